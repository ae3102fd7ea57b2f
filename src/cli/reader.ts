// SPDX-License-Identifier: Apache-2.0
import { eventView, type EventReply } from "../api/messages.ts";
import { resultLines } from "../api/result-lines.ts";
import { runView, type RunReply } from "../api/run-view.ts";
import type { RunListReply } from "../api/routes/run-list.ts";
import type { ResultLine } from "../api/routes/runs.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { followProgress } from "../queue/progress.ts";
import { listRuns } from "../queue/run-list.ts";
import { watchStreams } from "../queue/stream-watch.ts";
import { findThere } from "./control-server.ts";
import { findTarget } from "./control-target.ts";
import { openDesk, runOf } from "./desk.ts";
import { clientOf, type ServerFlags } from "./server-client.ts";

interface ResultsWanted {
  /** Go on after the line of this one. */
  cursor?: string;
  limit: number;
  follow: boolean;
  bare: boolean;
  signal: AbortSignal;
}

/** Runs and activations as commands look at them, through Redis or through a server. */
export interface Reader {
  /** Throws RollcallError "id_unknown". */
  find(id: string | null, options: { run: boolean }): Promise<{ kind: "run" | "activation"; id: string }>;
  results(runId: string, wanted: ResultsWanted): AsyncIterable<ResultLine>;
  /** Ends with the activation. */
  events(id: string, options: { signal: AbortSignal }): AsyncIterable<EventReply>;
  run(runId: string): Promise<RunReply>;
  /** Those that something was queued of last first. */
  runs(): AsyncIterable<RunListReply["runs"][number]>;
  close(): Promise<void>;
}

/** The caller closes it. Throws RollcallError. */
export async function openReader(flags: ServerFlags & { out?: string }, given: { settings: Settings; env: Environment }): Promise<Reader> {
  return flags.server === undefined ? openDeskReader(flags.out ?? null, given) : openServerReader(flags.server, flags, given);
}

async function openServerReader(
  url: string,
  flags: ServerFlags & { out?: string },
  given: { settings: Settings; env: Environment },
): Promise<Reader> {
  const client = await clientOf(url, flags, given);
  return {
    async find(id, options) {
      const target = await findThere(client, id ?? (await runOf(flags.out)), { ...options, out: flags.out });
      return target.kind === "run" ? { kind: "run", id: target.run.run_id } : { kind: "activation", id: target.found.activation_id };
    },
    results: (runId, wanted) => client.results(runId, wanted),
    events: (id, options) => client.events(id, options),
    run: (runId) => client.run(runId),
    runs: () => allRuns((more) => client.runs(more)),
    close: () => Promise.resolve(),
  };
}

async function openDeskReader(out: string | null, given: { settings: Settings; env: Environment }): Promise<Reader> {
  const desk = await openDesk({ ...given, out, records: false });
  const { queues, store } = desk;
  const watch = watchStreams(queues);
  const needStore = () => {
    if (store !== null) return store;
    throw new RollcallError("artifacts_missing", "results are in the artifact store: set artifacts (ROLLCALL_ARTIFACTS) to where it is");
  };
  return {
    async find(id, options) {
      const target = await findTarget(desk, id, options);
      return target.kind === "run" ? { kind: "run", id: target.run_id } : { kind: "activation", id: target.activation_id };
    },
    async *results(runId, wanted) {
      for await (const line of resultLines({ queues, watch, store: needStore() }, runId, { cursor: "0", ...wanted }))
        if (line.trim() !== "") yield JSON.parse(line) as ResultLine;
    },
    async *events(id, { signal }) {
      for await (const entry of followProgress(queues, id, { signal })) {
        const event = eventView(entry);
        yield event;
        if (event.stage === "ended") return;
      }
    },
    run: (runId) => runView({ queues, store: needStore() }, runId),
    runs: () => allRuns(({ after = null, limit }) => listRuns(queues, { after, count: limit })),
    async close() {
      watch.close();
      await desk.close();
    },
  };
}

const RUNS_AT_ONCE = 100;

async function* allRuns(
  page: (more: { after?: string; limit: number }) => Promise<RunListReply>,
): AsyncGenerator<RunListReply["runs"][number], undefined> {
  for (let after: string | null = null; ;) {
    const { runs, next }: RunListReply = await page({ limit: RUNS_AT_ONCE, ...(after === null ? {} : { after }) });
    yield* runs;
    if (next === null || runs.length < RUNS_AT_ONCE) return undefined;
    after = next;
  }
}
