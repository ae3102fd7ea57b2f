// SPDX-License-Identifier: Apache-2.0
// A producer that knows BullMQ and nothing of Rollcall: one activation with a secret in it. Redis must not hold that in clear, so the
// API seals it (POST /v1/seal) and answers what FlowProducer.add takes as it is. Sent again, it adds nothing.
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { FlowProducer } from "bullmq";

const { REDIS_URL, ROLLCALL_API_URL = "http://127.0.0.1:8080", ROLLCALL_API_KEY_FILE, MODEL_KEY_FILE } = process.env;
const [id, input, baseUrl] = process.argv.slice(2);
if (!REDIS_URL || !ROLLCALL_API_KEY_FILE || !MODEL_KEY_FILE || !id || !input) {
  console.error("usage: REDIS_URL=... ROLLCALL_API_KEY_FILE=... MODEL_KEY_FILE=... foreign-producer.mjs ID INPUT [MODEL_BASE_URL]");
  process.exit(2);
}

const { activation_id, flow } = await seal({
  activation_id: id,
  run_id: "foreign",
  task_id: { taskset: "foreign", task_id: id },
  input,
  model: { name: "gpt-5.5", api_key: readKey(MODEL_KEY_FILE), ...(baseUrl && { base_url: baseUrl }) },
  reply_to: "results-foreign",
});
const flows = new FlowProducer({ connection: { url: REDIS_URL }, prefix: "{rollcall}" });
try {
  await flows.add(flow);
  console.log(`queued ${activation_id}`);
} finally {
  await flows.close();
}

/** What is not usable is told with its fields; a server that is busy or away is asked again. */
async function seal(activation) {
  for (let tried = 1; ; tried++) {
    const response = await fetch(`${ROLLCALL_API_URL}/v1/seal`, {
      method: "POST",
      headers: { authorization: `Bearer ${readKey(ROLLCALL_API_KEY_FILE)}`, "content-type": "application/json" },
      body: JSON.stringify(activation),
    }).catch((error) => ({ ok: false, status: 503, headers: new Headers(), json: async () => ({ code: String(error.cause ?? error) }) }));
    const body = await response.json();
    if (response.ok) return body;
    const { code, detail = "", errors = [] } = body;
    if (![429, 503].includes(response.status) || tried === 10) {
      console.error([`${response.status} ${code} ${detail}`, ...errors.map(({ path, message }) => `  ${path}: ${message}`)].join("\n"));
      process.exit(1);
    }
    await delay(1_000 * Number(response.headers.get("retry-after") ?? tried));
  }
}

function readKey(path) {
  return readFileSync(path, "utf8").trim();
}
