// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { SealedActivation } from "../../src/activation/seal.ts";
import { cancelActivation } from "../../src/queue/cancel.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { activationFlow } from "../../src/queue/jobs.ts";
import { everythingIn } from "../support/redis-contents.ts";
import { activationOf, completes, startRig, TEST_KEYS, type Rig } from "./rig.ts";

/** Its middle survives every kind of escaping. */
const CORE = "FAKE0middle0FAKE";
const TOKEN = `a"\\b ${CORE} %é`;
const FORMS = [CORE, Buffer.from(TOKEN).toString("base64").slice(8, 24)];

let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

const secretive = (id: string) =>
  activationOf(id, {
    reply_to: "results",
    tool_grants: [
      {
        type: "mcp",
        name: "h",
        required: true,
        connection: { transport: "streamable_http", url: `http://u:${CORE}@127.0.0.1/`, headers: { H: TOKEN } },
      },
      { type: "mcp", name: "s", required: true, connection: { transport: "stdio", command: "c", env: { E: TOKEN } } },
      {
        type: "direct_http",
        name: "d",
        required: false,
        base_url: `http://127.0.0.1/?q=${CORE}`,
        headers: { H: TOKEN },
        cookies: { C: TOKEN },
      },
    ],
    sandbox: { env: { MY_TOKEN: TOKEN, M: { value: TOKEN, secret: true } } },
    model: { api_key: TOKEN },
  });

/** All that Redis was ever told: its append-only file. */
function appendOnlyFile(): string {
  const files = readdirSync(rig.redis.dir, { recursive: true }).map((name) => join(rig.redis.dir, String(name)));
  return files
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, "latin1"))
    .join("\n");
}

it("no secret is in Redis or its file at any time: waiting, running, failed, cancelled, ended [C8]", async () => {
  const running = new Set<string>();
  let proceed = (): void => undefined;
  const mayEnd = new Promise<void>((resolve) => (proceed = resolve));
  await enqueueActivations(rig.queues, ["act-ok", "act-fault", "act-cancel"].map(secretive), { keys: TEST_KEYS });
  await enqueueActivations(rig.queues, [{ ...secretive("act-ok"), model: { api_key: `${TOKEN}2` } }], { keys: TEST_KEYS }); // a conflict
  await cancelActivation(rig.queues, "act-cancel", { by: "test", at: "2026-11-29T16:00:00.000Z", reason: "" });
  await rig.sentinel();
  await rig.worker(async (claim) => {
    running.add(claim.activation.activation_id);
    expect(JSON.stringify(claim.activation)).toContain(CORE); // it does get its secrets
    await mayEnd;
    if (claim.activation.activation_id === "act-fault") throw new Error(`could not use ${TOKEN}`);
    return completes(rig.store)(claim);
  });
  await vi.waitFor(() => expect(running.size).toBe(2), { timeout: 20_000 });
  const whileRunning = await everythingIn(rig.queues.redis);
  expect(whileRunning).toContain("ciphertext");
  proceed();
  for (const id of ["act-ok", "act-fault", "act-cancel"]) await rig.ended(id);
  const afterwards = await everythingIn(rig.queues.redis);
  const told = appendOnlyFile();
  expect(told).toContain("act-fault");
  for (const form of FORMS) for (const place of [whileRunning, afterwards, told]) expect(place).not.toContain(form);
  expect(afterwards).not.toContain("ciphertext");
});

it("the same search finds the secrets when they are not sealed", async () => {
  const plain = secretive("act-plain");
  const options = { generation: 0, enqueuedAt: new Date().toISOString(), settings: rig.queues.settings };
  await rig.queues.flows.add(activationFlow(plain, structuredClone<SealedActivation>(plain), options));
  expect(await everythingIn(rig.queues.redis)).toContain(CORE);
  expect(appendOnlyFile()).toContain(CORE);
});
