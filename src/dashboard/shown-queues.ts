// SPDX-License-Identifier: Apache-2.0
import type { ArtifactStore } from "../artifacts/types.ts";
import { ACTIVATIONS, FINAL, keys, STEPS } from "../queue/names.ts";
import type { Queues } from "../queue/queues.ts";
import { inPieces } from "../queue/scan.ts";
import { BoardQueue } from "./board-queue.ts";

/** Results queues that are shown beside ours. Each costs a page some short commands, every few seconds. */
const MOST_RESULT_QUEUES = 50;
const LOOK_MS = 10_000;

const DESCRIPTIONS: Record<string, string> = {
  [ACTIVATIONS]: "What is to be run, runs, and ran. Completed means that it is over: how it ended is in its title.",
  [FINAL]: "Takes down how each activation ended, and hands its result on.",
  [STEPS]: "What is done for rollouts with a resources server around their activations: a job wakes one, and waits with it.",
};
const OF_RESULTS = "Results for consumers: waiting until one takes them.";

/**
 * The queues to show: ours, and the results queues that anything was delivered to, the first fifty that Redis names. Those are
 * looked for again when somebody asks, at most every ten seconds. `changed` gets all of them.
 */
export function shownQueues(ports: { queues: Queues; store: ArtifactStore }): {
  first: BoardQueue[];
  refresh(changed: (all: BoardQueue[]) => void): Promise<void>;
} {
  const { queues } = ports;
  const first = [queues.activations, queues.final, queues.steps].map(
    (queue) => new BoardQueue(ports, queue, DESCRIPTIONS[queue.name] ?? ""),
  );
  const results = new Map<string, BoardQueue>();
  let looked = Number.NEGATIVE_INFINITY;
  return {
    first,
    async refresh(changed) {
      if (performance.now() - looked < LOOK_MS) return;
      looked = performance.now();
      for await (const names of inPieces(queues.redis.sscanStream(keys.resultQueues, { count: 100 }), 100)) {
        for (const name of names) {
          if (results.size >= MOST_RESULT_QUEUES) break;
          if (!results.has(name)) results.set(name, new BoardQueue(ports, queues.results(name), OF_RESULTS));
        }
        if (results.size >= MOST_RESULT_QUEUES) break;
      }
      changed([...first, ...results.values()]);
    },
  };
}
