// SPDX-License-Identifier: Apache-2.0
import { createReadStream } from "node:fs";
import { Command } from "commander";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { newRunId } from "../contract/identity.ts";
import { RollcallError } from "../errors.ts";
import type { LocalCopy } from "../references/reference.ts";
import type { EnqueueAnswer } from "../rollout/fleet.ts";
import { checkWithReferences } from "../rollout/fetch-references.ts";
import { inputPutter } from "../rollout/put-inputs.ts";
import { describeBadRows, readTasks, type TaskCheck, type TaskSource } from "../rollout/tasks.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, withModelFlags, type SettingsFlags } from "./settings-flags.ts";
import { taskSource, withTaskFlags, type TaskFlags } from "./task-source.ts";
import { printable } from "../printable.ts";

interface EnqueueFlags extends SettingsFlags, ServerFlags, TaskFlags {
  runId?: string;
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
    .option("--json", "the answer as one JSON object on stdout");
  return withModelFlags(withConfigFlag(withServerFlags(withTaskFlags(command)))).action(async (tasks: string, flags: EnqueueFlags) => {
    const settings = await settingsFrom(flags);
    const run_id = flags.runId ?? newRunId();
    const counts = await enqueueFile({ ...(await taskSource(tasks, flags, settings)), runId: run_id }, flags, {
      settings,
      env: process.env,
    });
    const { added, joined, ended } = counts;
    process.stdout.write(
      printable(
        flags.json === true
          ? `${JSON.stringify({ run_id, ...counts })}\n`
          : `run ${run_id}: ${added} queued${joined + ended === 0 ? "" : `, ${joined} were there, ${ended} have ended before`}\n`,
      ),
    );
  });
}

/** All of the file is checked before anything is queued. Throws RollcallError. */
async function enqueueFile(
  source: TaskSource,
  flags: ServerFlags,
  given: { settings: Settings; env: Environment },
): Promise<Record<"added" | "joined" | "ended", number>> {
  const requireGood = (check: TaskCheck): void => {
    if (check.badRows > 0) throw new RollcallError("tasks_invalid", `${describeBadRows(source.path, check)}\nNothing was queued.`);
    if (check.rows === 0) throw new RollcallError("tasks_empty", `${source.path} has no tasks`);
  };
  const say = (line: string): void => void process.stderr.write(printable(`${line}\n`));
  const { warnings } = await checkWithReferences(source, requireGood, say);
  for (const warning of warnings) say(`warning: ${warning}`);
  const counts = { added: 0, joined: 0, ended: 0 };
  const { send, putInput, close } = await openSender(flags, given);
  try {
    for await (const batch of batches(source, inputPutter(putInput))) {
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

async function* batches(
  source: TaskSource,
  putInputs: (copies: readonly LocalCopy[]) => Promise<void>,
): AsyncGenerator<SessionActivation[], undefined> {
  let batch: SessionActivation[] = [];
  let bytes = 0;
  for await (const row of readTasks(source, "read")) {
    if (!row.ok) throw new RollcallError("tasks_changed", `${source.path} changed while it was read: line ${row.line} cannot be run`);
    await putInputs(row.inputs);
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
  putInput: (copy: LocalCopy) => Promise<void>;
  close: () => Promise<void>;
}

async function openSender(flags: ServerFlags, given: { settings: Settings; env: Environment }): Promise<Sender> {
  if (flags.server !== undefined) {
    const [{ clientOf }, { enqueueThrough }] = await Promise.all([import("./server-client.ts"), import("../rollout/http-fleet.ts")]);
    const client = await clientOf(flags.server, flags, given);
    return {
      send: (batch) => enqueueThrough(client, batch, { again: false }),
      async putInput({ sha256, path }) {
        await client.putFile(sha256, path);
      },
      close: () => Promise.resolve(),
    };
  }
  const [{ openDesk }, { enqueueActivations }] = await Promise.all([import("./desk.ts"), import("../queue/enqueue.ts")]);
  const desk = await openDesk({ ...given, out: null, records: false });
  const { queues, keys, store } = desk;
  if (keys === null) {
    await desk.close();
    throw new RollcallError(
      "secret_key_missing",
      "set ROLLCALL_SECRET_KEY to the deployment's key: secrets are sealed before they are queued",
    );
  }
  return {
    send: (batch) => enqueueActivations(queues, batch, { keys }),
    async putInput({ sha256, path }) {
      if (store !== null) return store.putInput(sha256, createReadStream(path));
      throw new RollcallError(
        "artifacts_missing",
        "reference files go to the artifact store: set artifacts (ROLLCALL_ARTIFACTS) to where it is",
      );
    },
    close: () => desk.close(),
  };
}
