// SPDX-License-Identifier: Apache-2.0
// A worker process to be killed: node queue-worker.mjs <redis socket> <store root> <settings as JSON>.
// Takes an attempt, writes an event, prints "<activation id> <attempt>", and runs until it is stopped. Needs dist/.
import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { parseSecretKeys } from "../../dist/src/activation/secret-keys.js";
import { openDirectoryStore } from "../../dist/src/artifacts/directory-store.js";
import { startActivationWorker } from "../../dist/src/queue/activation-worker.js";
import { openQueues } from "../../dist/src/queue/queues.js";

const [path, storeRoot, settings] = process.argv.slice(2);
const queues = openQueues({ kind: "socket", path }, { onError: () => undefined, settings: JSON.parse(settings) });
const store = await openDirectoryStore(storeRoot);
await startActivationWorker({
  queues,
  store,
  keys: parseSecretKeys(Buffer.alloc(32, 7).toString("base64")),
  concurrency: 4,
  log: pino({ level: "silent" }),
  facts: {
    worker_id: `child-${process.pid}`,
    host: "test",
    pid: process.pid,
    providers: ["host"],
    codex_versions: [],
    key_ids: [],
    schema_minor: 0,
    store_id: store.id,
    classes: [],
    held_back: null,
  },
  async run({ activation, signal, ledger }) {
    const worker = { id: `child-${process.pid}`, host: "test", version: "0", codex_version: null, sandbox_provider: "host" };
    const { activation_id } = activation;
    const { attempt } = await ledger.takeAttempt(worker);
    const events = new PassThrough();
    store
      .put(activation_id, attempt, "events.jsonl", events, { kind: "evidence", source: null, quarantined: false })
      .catch(() => undefined);
    events.write('[1,{"type":"turn.started"}]\n');
    while ((await store.find(activation_id, attempt, "events.jsonl", {}))?.bytes !== 28) await delay(10);
    process.stdout.write(`${activation.activation_id} ${attempt}\n`);
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    return { kind: "handed_back", reason: signal.reason.kind };
  },
});
