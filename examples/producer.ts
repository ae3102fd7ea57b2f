// SPDX-License-Identifier: Apache-2.0
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
// In a program of your own: from "rollcall".
import {
  admit,
  enqueueActivations,
  openQueues,
  parseSecretKeys,
  withDerivedIds,
  type Refusal,
  type SessionActivation,
} from "../src/index.ts";

/**
 * A producer: queues the tasks of a JSONL file, each an activation without its run, with the library. Run it again after a crash:
 * the ids come from the run's name and the tasks' ids, and what is queued already is joined. Exit 1: something was refused, or is
 * there with other content.
 */
const { values: flags } = parseArgs({
  options: {
    run: { type: "string" },
    tasks: { type: "string", default: "examples/data/tasks.jsonl" },
    file: { type: "string", default: "examples/data/invoices.csv" },
    model: { type: "string", default: "gpt-5.5" },
    "model-base-url": { type: "string" },
  },
});
const { REDIS_URL, ROLLCALL_SECRET_KEY } = process.env;
if (flags.run === undefined || REDIS_URL === undefined || ROLLCALL_SECRET_KEY === undefined) {
  console.error(
    "usage: REDIS_URL=... ROLLCALL_SECRET_KEY=... producer --run NAME [--tasks FILE] [--file FILE] [--model NAME] [--model-base-url URL]",
  );
  process.exit(2);
}

/** Of a larger file: what `ArtifactStore.putInput` or `PUT /v1/files` answers, as `artifact`. */
const placed = { path: basename(flags.file), content: await readFile(flags.file, "utf8") };
const baseUrl = flags["model-base-url"];
const common = {
  run_id: flags.run,
  reply_to: `results-${flags.run}`,
  model: { name: flags.model, ...(baseUrl === undefined ? {} : { base_url: baseUrl }) },
  sandbox: { files: [placed] },
  outputs: { paths: ["*.txt"] },
};
/** What the workers allow; they look again themselves. */
const policy = { allow_providers: ["bubblewrap"], allow_key_env: ["OPENAI_API_KEY"] };

const activations: SessionActivation[] = [];
for await (const line of createInterface({ input: createReadStream(flags.tasks) })) {
  if (line.trim() === "") continue;
  const admission = admit(withDerivedIds({ ...common, ...(JSON.parse(line) as Record<string, unknown>) }, flags.run), policy);
  if (admission.accepted) activations.push(admission.activation);
  else refused(admission.refusals);
}

const queues = openQueues({ kind: "url", url: REDIS_URL }, { onError: (error) => console.error(error.message) });
try {
  const answers = await enqueueActivations(queues, activations, { keys: parseSecretKeys(ROLLCALL_SECRET_KEY) });
  for (const { activation_id, outcome, fields = [], no_worker_for } of answers) {
    console.log([activation_id, outcome, ...fields, ...(no_worker_for === undefined ? [] : [`no worker has ${no_worker_for}`])].join(" "));
    if (outcome === "conflict") process.exitCode = 1;
  }
} finally {
  await queues.close();
}

function refused(refusals: readonly Refusal[]): void {
  for (const { code, path, message, accepted } of refusals) console.error(`${code}: ${path}: ${message}; expected ${accepted}`);
  process.exitCode = 1;
}
