// SPDX-License-Identifier: Apache-2.0
import { createReadStream } from "node:fs";
import { Command } from "commander";
import pMap from "p-map";
import type { ArtifactStore } from "../artifacts/types.ts";
import { unlessUnknown } from "../client/api-error.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { newRunId } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import type { LocalCopy } from "../references/reference.ts";
import { RETRY_POLICIES, runsAgain, type RetryPolicy } from "../rollout/again.ts";
import { factsOf } from "../rollout/facts.ts";
import type { EnqueueAnswer } from "../rollout/fleet.ts";
import { checkWithReferences } from "../rollout/fetch-references.ts";
import { inputPutter } from "../rollout/put-inputs.ts";
import { describeBadRows, readTasks, type TaskCheck, type TaskSource } from "../rollout/tasks.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { oneOf } from "./options.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, withModelFlags, type SettingsFlags } from "./settings-flags.ts";
import { taskSource, withTaskFlags, type TaskFlags } from "./task-source.ts";
import { printable } from "../printable.ts";

interface EnqueueFlags extends SettingsFlags, ServerFlags, TaskFlags {
  runId?: string;
  json?: true;
  again: RetryPolicy;
}

/** Most activations, and about the most bytes, that are sent at once. */
const BATCH = 100;
const BATCH_BYTES = 8 * 1024 * 1024;
/** Results that are looked at at once. */
const LOOKS = 8;

export function enqueueCommand(): Command {
  const command = new Command("enqueue")
    .description("Queue every task of a file and leave: workers elsewhere run them. The same --run-id again queues what is missing.")
    .argument("<tasks.jsonl>", "one task per line, as for `rollcall run`")
    .option("--run-id <id>", "the run they belong to (default: a new one, which is printed)")
    .option(
      "--again <which>",
      "of its tasks that have ended, run again: infra (not the agent's fault), failed, none",
      oneOf(RETRY_POLICIES),
      "none",
    )
    .option("--json", "the answer as one JSON object on stdout");
  return withModelFlags(withConfigFlag(withServerFlags(withTaskFlags(command)))).action(async (tasks: string, flags: EnqueueFlags) => {
    const settings = await settingsFrom(flags);
    const run_id = flags.runId ?? newRunId();
    const counts = await enqueueFile({ ...(await taskSource(tasks, flags, settings)), runId: run_id }, flags, {
      settings,
      env: process.env,
    });
    const { added, again, joined, ended } = counts;
    process.stdout.write(
      printable(
        flags.json === true
          ? `${JSON.stringify({ run_id, ...counts })}\n`
          : `run ${run_id}: ${added} queued${again === 0 ? "" : `, ${again} of them again`}${joined + ended === 0 ? "" : `, ${joined} were there, ${ended} have ended before`}\n`,
      ),
    );
  });
}

/** All of the file is checked before anything is queued. Throws RollcallError. */
async function enqueueFile(
  source: TaskSource,
  flags: EnqueueFlags,
  given: { settings: Settings; env: Environment },
): Promise<Record<"added" | "again" | "joined" | "ended", number>> {
  const requireGood = (check: TaskCheck): void => {
    if (check.badRows > 0) throw new RollcallError("tasks_invalid", `${describeBadRows(source.path, check)}\nNothing was queued.`);
    if (check.rows === 0) throw new RollcallError("tasks_empty", `${source.path} has no tasks`);
  };
  const say = (line: string): void => void process.stderr.write(printable(`${line}\n`));
  const { warnings } = await checkWithReferences(source, requireGood, say);
  for (const warning of warnings) say(`warning: ${warning}`);
  const counts = { added: 0, again: 0, joined: 0, ended: 0 };
  const sender = await openSender(flags, given);
  const count = ({ activation_id, outcome, fields = [] }: EnqueueAnswer): void => {
    if (outcome === "conflict") throw conflict(activation_id, fields);
    counts[outcome] += 1;
  };
  try {
    for await (const batch of batches(source, inputPutter(sender.putInput))) {
      const { fresh, again, over } = await sorted(batch, flags.again, sender);
      counts.ended += over;
      if (fresh.length > 0) (await sender.send(fresh, { again: false })).forEach(count);
      if (again.length === 0) continue;
      const answers = await sender.send(again, { again: true });
      answers.forEach(count);
      counts.again += answers.filter(({ outcome }) => outcome === "added").length;
    }
  } finally {
    await sender.close();
  }
  return counts;
}

function conflict(id: string, fields: readonly string[]): RollcallError {
  const remedy =
    fields.join() === "run_id" ? "name its run with --run-id (`rollcall status` of the id says which)" : "choose another --run-id";
  return new RollcallError("activation_conflict", `${id} is in the queue with other content (${fields.join(", ")}): ${remedy}`);
}

/** By what becomes of them under `--again`: an end decides, so what has a result is only queued as a new generation. */
async function sorted(
  batch: readonly SessionActivation[],
  policy: RetryPolicy,
  { readResult }: Sender,
): Promise<{ fresh: SessionActivation[]; again: SessionActivation[]; over: number }> {
  if (policy === "none") return { fresh: [...batch], again: [], over: 0 };
  const facts = await pMap(batch, async ({ activation_id }) => factsOf(await readResult(activation_id)), { concurrency: LOOKS });
  const ended = batch.filter((_, index) => facts[index] !== null);
  const again = batch.filter((_, index) => facts[index] != null && (facts[index].refused_row || runsAgain(facts[index], policy)));
  return { fresh: batch.filter((_, index) => facts[index] === null), again, over: ended.length - again.length };
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
  send: (batch: readonly SessionActivation[], options: { again: boolean }) => Promise<EnqueueAnswer[]>;
  /** null: it has not ended. */
  readResult: (activationId: string) => Promise<ActivationResult | null>;
  putInput: (copy: LocalCopy) => Promise<void>;
  close: () => Promise<void>;
}

async function openSender(flags: ServerFlags, given: { settings: Settings; env: Environment }): Promise<Sender> {
  if (flags.server !== undefined) {
    const [{ clientOf }, { enqueueThrough }] = await Promise.all([import("./server-client.ts"), import("../rollout/http-fleet.ts")]);
    const client = await clientOf(flags.server, flags, given);
    return {
      send: (batch, options) => enqueueThrough(client, batch, options),
      readResult: (id) => unlessUnknown(client.result(id)),
      async putInput({ sha256, path }) {
        await client.putFile(sha256, path);
      },
      close: () => Promise.resolve(),
    };
  }
  const [{ openDesk }, { enqueueActivations }, { enqueueAgain }] = await Promise.all([
    import("./desk.ts"),
    import("../queue/enqueue.ts"),
    import("../queue/enqueue-again.ts"),
  ]);
  const desk = await openDesk({ ...given, out: null, records: false });
  const { queues, keys, store } = desk;
  if (keys === null) {
    await desk.close();
    throw new RollcallError(
      "secret_key_missing",
      "set ROLLCALL_SECRET_KEY to the deployment's key: secrets are sealed before they are queued",
    );
  }
  const needStore = (what: string): ArtifactStore => {
    if (store !== null) return store;
    throw new RollcallError("artifacts_missing", `${what} needs the artifact store: set artifacts (ROLLCALL_ARTIFACTS) to where it is`);
  };
  return {
    send: async (batch, { again }) =>
      again
        ? enqueueAgain(queues, needStore("--again"), batch, { keys })
        : enqueueActivations(queues, batch, { keys, ...(store === null ? {} : { store }) }),
    readResult: (id) => needStore("--again").readCommit(id),
    async putInput({ sha256, path }) {
      return needStore("reference files").putInput(sha256, createReadStream(path));
    },
    close: () => desk.close(),
  };
}
