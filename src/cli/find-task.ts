// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { meantBy } from "../config/nearest.ts";
import { deriveActivationId, safeName } from "../contract/identity.ts";
import { RollcallError } from "../errors.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { openRowFile } from "../rollout/row-file.ts";

/** Where activations are looked for: Redis, or a server. */
export interface Place {
  /** For people. */
  name: string;
  /** Runs, the newest first, at most some tens. */
  runs(): Promise<readonly string[]>;
  /** Those of the ids that are known. At most 1,000. */
  known(activationIds: readonly string[]): Promise<readonly string[]>;
  /** Some activations of a run; `task`: taskset/task_id, where it is known. */
  some(runId: string): Promise<readonly { activation_id: string; task: string | null }[]>;
}

/** Repeats of a task that are looked for by the names that they are given. */
const REPEATS = 10;
/** Runs whose activations are looked at when a name is suggested. */
const LOOKED_AT = 5;

/**
 * The activation of a task id. With `out`, the directory of a run, as its rows.jsonl has it; else by the ids that rows without their
 * own are given in the newest runs, and by what has ended there. Throws RollcallError "id_unknown", with what may be meant, or "id_ambiguous".
 */
export async function findTask(task: string, { out, run }: { out: string | null; run: string | null }, place: Place): Promise<string> {
  const rows = out === null ? null : await openRowFile(join(out, OUTPUT_FILES.rows));
  await rows?.close();
  const runs = run === null ? await place.runs() : [run];
  const names = new Set([...runs, ...(rows === null ? [] : [...rows.tasks.keys(), ...rows.ids])]);
  let found = rows?.tasks.get(task) ?? (await place.known(runs.flatMap((runId) => possibleIds(runId, task))));
  if (found.length === 0 && rows === null) {
    const seen = await seenIn(runs.slice(0, LOOKED_AT), place);
    for (const { activation_id, name } of seen) names.add(activation_id).add(name);
    found = seen.flatMap(({ activation_id, name }) => (name === task ? [activation_id] : []));
  }
  if (found.length === 1) return found[0]!;
  const called = JSON.stringify(task.slice(0, 200));
  if (found.length > 1)
    throw new RollcallError(
      "id_ambiguous",
      `${found.length} activations have the task id ${called}; name one: ${found.slice(0, 10).join(", ")}`,
    );
  const meant = meantBy(task, names);
  const hint = meant.length === 0 ? "" : `; did you mean ${meant.join(", ")}?`;
  throw new RollcallError("id_unknown", `${called} is no activation, task or run that ${place.name} knows${hint}`);
}

/** Some activations, each with its task: as its row has it, else as its id does. */
async function seenIn(runs: readonly string[], place: Place): Promise<{ activation_id: string; name: string }[]> {
  const seen = new Map<string, string>(); // one may come more than once
  for (const runId of runs) {
    const prefix = `act-${safeName(runId)}-`;
    for (const { activation_id, task } of await place.some(runId)) {
      const ofId = activation_id.startsWith(prefix) ? activation_id.slice(prefix.length) : activation_id;
      seen.set(activation_id, task?.slice(task.indexOf("/") + 1) ?? ofId);
    }
  }
  return [...seen].map(([activation_id, name]) => ({ activation_id, name }));
}

/** How the activations of a task are called whose row names no id of its own. Pure. */
function possibleIds(runId: string, task: string): string[] {
  const id = deriveActivationId(runId, task);
  return [id, ...Array.from({ length: REPEATS }, (_, repeat) => `${id}-r${repeat}`)];
}
