// SPDX-License-Identifier: Apache-2.0
import { activationIdSchema } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { asRolloutResult } from "../resources/documents.ts";
import { findKnown, type KnownActivation, type RolloutNow } from "../resources/find-rollouts.ts";
import { isKnownRun } from "../queue/run-status.ts";
import { describeRedis } from "../redis/connect.ts";
import type { Desk } from "./desk.ts";

/** What a command is about. */
export type Target = { kind: "run"; run_id: string } | { kind: "activation"; activation_id: string; found: KnownActivation };

/**
 * What an id names: an activation first, since that is the smaller thing, unless `run`. Ends that Redis has forgotten are
 * looked for in the store. Throws RollcallError "id_missing", "id_unknown".
 */
export async function findTarget({ queues, run, store }: Desk, id: string | null, options: { run: boolean }): Promise<Target> {
  if (id === null && run === null)
    throw new RollcallError("id_missing", "name an activation or a run, or with --out the directory of a run");
  const name = id ?? run!.run_id;
  if (!options.run && id !== null) {
    const [found] = await findKnown(queues, [name]);
    if (found!.state !== "unknown") return { kind: "activation", activation_id: name, found: found! };
  }
  if (name === run?.run_id || (await isKnownRun(queues, name))) return { kind: "run", run_id: name };
  const result = activationIdSchema.safeParse(name).success ? await store?.readCommit(name) : null;
  if (result != null && !options.run) {
    const [unknown] = await findKnown(queues, [name]);
    const { run_id, generation, status, episode_id } = result;
    const whole = await asRolloutResult(store!, result);
    const rollout = whole === null ? null : endedRollout(whole, episode_id.attempt);
    return { kind: "activation", activation_id: name, found: { ...unknown!, run_id, generation, status, state: "ended", rollout } };
  }
  const where = run === null ? describeRedis(queues.target) : `run ${run.run_id}`;
  throw new RollcallError("id_unknown", `${JSON.stringify(name.slice(0, 200))} is neither an activation nor a run that ${where} knows`);
}

function endedRollout({ reward, attempts }: ActivationResult, attempt: number): RolloutNow {
  const failed_attempts = attempts.filter((one) => one.attempt < attempt && one.charged).length;
  return { state: "ended", attempt, failed_attempts, failed_tries: 0, unreachable_since: null, reward: reward ?? null };
}
