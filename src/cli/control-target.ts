// SPDX-License-Identifier: Apache-2.0
import { activationIdSchema } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { asRolloutResult } from "../resources/documents.ts";
import { findKnown, type KnownActivation, type RolloutNow } from "../resources/find-rollouts.ts";
import { isKnownRun } from "../queue/run-status.ts";
import { describeRedis } from "../redis/connect.ts";
import type { Queues } from "../queue/queues.ts";
import { listRuns } from "../queue/run-list.ts";
import { rowsAfter, waitingRows } from "../queue/run-rows.ts";
import type { Desk } from "./desk.ts";
import { findTask, type Place } from "./find-task.ts";

/** What a command is about. */
export type Target = { kind: "run"; run_id: string } | { kind: "activation"; activation_id: string; found: KnownActivation };

/**
 * What an id names: an activation first, since that is the smaller thing, unless `run`; then a run; then the one activation of a task.
 * Ends that Redis has forgotten are looked for in the store. Throws RollcallError "id_missing", "id_unknown", "id_ambiguous".
 */
export async function findTarget(desk: Desk, id: string | null, options: { run: boolean }): Promise<Target> {
  const { queues, run, out } = desk;
  if (id === null && run === null)
    throw new RollcallError("id_missing", "name an activation or a run, or with --out the directory of a run");
  const name = id ?? run!.run_id;
  const target = await lookUp(desk, name, { run: options.run || id === null });
  if (target !== null) return target;
  const place = placeOf(queues, run === null ? describeRedis(queues.target) : `run ${run.run_id}`);
  const task = options.run ? null : await findTask(name, { out, run: run?.run_id ?? null }, place);
  const found = task === null ? null : await lookUp(desk, task, { run: false });
  if (found !== null) return found;
  throw new RollcallError(
    "id_unknown",
    `${JSON.stringify(name.slice(0, 200))} is no ${task === null ? "run" : "activation"} that ${place.name} knows`,
  );
}

async function lookUp({ queues, run, store }: Desk, name: string, options: { run: boolean }): Promise<Target | null> {
  if (!options.run) {
    const [found] = await findKnown(queues, [name]);
    if (found!.state !== "unknown") return { kind: "activation", activation_id: name, found: found! };
  }
  if (name === run?.run_id || (await isKnownRun(queues, name))) return { kind: "run", run_id: name };
  const result = activationIdSchema.safeParse(name).success ? await store?.readCommit(name) : null;
  if (result == null || options.run) return null;
  const [unknown] = await findKnown(queues, [name]);
  const { run_id, generation, status, episode_id } = result;
  const whole = await asRolloutResult(store!, result);
  const rollout = whole === null ? null : endedRollout(whole, episode_id.attempt);
  return { kind: "activation", activation_id: name, found: { ...unknown!, run_id, generation, status, state: "ended", rollout } };
}

function placeOf(queues: Queues, name: string): Place {
  return {
    name,
    runs: async () => (await listRuns(queues, { after: null, count: 50 })).runs.map(({ run_id }) => run_id),
    known: async (ids) =>
      (await findKnown(queues, ids)).flatMap(({ activation_id, state }) => (state === "unknown" ? [] : [activation_id])),
    async some(runId) {
      const some: { activation_id: string; task: string | null }[] = [
        ...(await rowsAfter(queues, runId, { after: "0", count: 1_000 })).rows,
      ];
      for await (const rows of waitingRows(queues, runId, 1_000)) some.push(...rows);
      return some;
    },
  };
}

function endedRollout({ reward, attempts }: ActivationResult, attempt: number): RolloutNow {
  const failed_attempts = attempts.filter((one) => one.attempt < attempt && one.charged).length;
  return { state: "ended", attempt, failed_attempts, failed_tries: 0, unreachable_since: null, reward: reward ?? null };
}
