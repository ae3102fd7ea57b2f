// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { admissionPolicy, type Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { newRunId } from "../contract/identity.ts";
import { RollcallError } from "../errors.ts";
import type { EnqueueAnswer } from "../rollout/fleet.ts";
import { checkTasks, describeBadRows, readTasks, type TaskSource } from "../rollout/tasks.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { wholeNumber } from "./options.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, withModelFlags, type SettingsFlags } from "./settings-flags.ts";

interface EnqueueFlags extends SettingsFlags, ServerFlags {
  runId?: string;
  limit?: number;
  repeats: number;
  json?: true;
}

/** Most activations, and about the most bytes, that are sent at once. */
const BATCH = 100;
const BATCH_BYTES = 8 * 1024 * 1024;

export function enqueueCommand(): Command {
  const command = new Command("enqueue")
    .description("Queue every task of a file and leave: workers elsewhere run them. The same --run-id again queues what is missing.")
    .argument("<tasks.jsonl>", "one task per line, as for `rollcall run`")
    .option("--run-id <id>", "the run they belong to (default: a new one, which is printed)")
    .option("--limit <n>", "only the first n rows", wholeNumber(1))
    .option("--repeats <n>", "rollouts of each task", wholeNumber(1), 1)
    .option("--json", "the answer as one JSON object on stdout");
  return withModelFlags(withConfigFlag(withServerFlags(command))).action(async (tasks: string, flags: EnqueueFlags) => {
    const settings = await settingsFrom(flags);
    const run_id = flags.runId ?? newRunId();
    const counts = await enqueueFile(sourceOf(tasks, run_id, flags, settings), flags, { settings, env: process.env });
    const { added, joined, ended } = counts;
    process.stdout.write(
      flags.json === true
        ? `${JSON.stringify({ run_id, ...counts })}\n`
        : `run ${run_id}: ${added} queued${joined + ended === 0 ? "" : `, ${joined} were there, ${ended} have ended before`}\n`,
    );
  });
}

function sourceOf(path: string, runId: string, flags: EnqueueFlags, settings: Settings): TaskSource {
  const { repeats, limit } = flags;
  const more = limit === undefined ? {} : { limit };
  return { path, runId, repeats, defaults: settings, toolGrants: settings.tool_grants, policy: admissionPolicy(settings), ...more };
}

/** All of the file is checked before anything is queued. Throws RollcallError. */
async function enqueueFile(
  source: TaskSource,
  flags: ServerFlags,
  given: { settings: Settings; env: Environment },
): Promise<Record<"added" | "joined" | "ended", number>> {
  const check = await checkTasks(source);
  if (check.badRows > 0) throw new RollcallError("tasks_invalid", `${describeBadRows(source.path, check)}\nNothing was queued.`);
  if (check.rows === 0) throw new RollcallError("tasks_empty", `${source.path} has no tasks`);
  const counts = { added: 0, joined: 0, ended: 0 };
  const { send, close } = await openSender(flags, given);
  try {
    for await (const batch of batches(source)) {
      for (const { activation_id, outcome, fields = [] } of await send(batch)) {
        if (outcome === "conflict")
          throw new RollcallError(
            "activation_conflict",
            `${activation_id} is in the queue with other content (${fields.join(", ")}): choose another --run-id`,
          );
        counts[outcome] += 1;
      }
    }
  } finally {
    await close();
  }
  return counts;
}

async function* batches(source: TaskSource): AsyncGenerator<SessionActivation[], undefined> {
  let batch: SessionActivation[] = [];
  let bytes = 0;
  for await (const row of readTasks(source, "read")) {
    if (!row.ok) throw new RollcallError("tasks_changed", `${source.path} changed while it was read: line ${row.line} cannot be run`);
    for (const activation of row.activations) {
      batch.push(activation);
      bytes += JSON.stringify(activation).length;
      if (batch.length < BATCH && bytes < BATCH_BYTES) continue;
      yield batch;
      [batch, bytes] = [[], 0];
    }
  }
  if (batch.length > 0) yield batch;
  return undefined;
}

interface Sender {
  send: (batch: readonly SessionActivation[]) => Promise<EnqueueAnswer[]>;
  close: () => Promise<void>;
}

async function openSender(flags: ServerFlags, given: { settings: Settings; env: Environment }): Promise<Sender> {
  if (flags.server !== undefined) {
    const [{ clientOf }, { enqueueThrough }] = await Promise.all([import("./server-client.ts"), import("../rollout/http-fleet.ts")]);
    const client = await clientOf(flags.server, flags, given);
    return { send: (batch) => enqueueThrough(client, batch, { again: false }), close: () => Promise.resolve() };
  }
  const [{ openDesk }, { enqueueActivations }] = await Promise.all([import("./desk.ts"), import("../queue/enqueue.ts")]);
  const desk = await openDesk({ ...given, out: null, records: false });
  const { queues, keys } = desk;
  if (keys === null) {
    await desk.close();
    throw new RollcallError(
      "secret_key_missing",
      "set ROLLCALL_SECRET_KEY to the deployment's key: secrets are sealed before they are queued",
    );
  }
  return { send: (batch) => enqueueActivations(queues, batch, { keys }), close: () => desk.close() };
}
