// SPDX-License-Identifier: Apache-2.0
import { pino } from "pino";
import { expect, it, onTestFinished, vi } from "vitest";
import type { ActivationResult } from "../../src/contract/result.ts";
import { startWebhookSenders } from "../../src/webhooks/senders.ts";
import { saveWebhook, sealFor } from "../../src/webhooks/subscription.ts";
import { activationOf, TEST_KEYS } from "../queue/rig.ts";
import { startReceiver, status } from "../webhooks/receiver.ts";
import { failsBefore, startChain } from "./rig.ts";

it("webhooks are told of a rollout once, when it is over and with its reward, not of the sessions on the way", async () => {
  const chain = await startChain();
  const { queues, store } = chain;
  const receiver = await startReceiver(status(204));
  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  await saveWebhook(queues, {
    name: "all",
    origin: receiver.origin,
    url: sealFor("all", "url", `${receiver.origin}/`, TEST_KEYS),
    secret: sealFor("all", "secret", secret, TEST_KEYS),
    run_id: null,
    reply_to: null,
    events: ["activation.completed", "activation.failed"],
    changed_at: new Date().toISOString(),
    changed_by: "test",
    disabled: null,
  });
  const settings = { timeout_ms: 20_000, max_attempts: 3, base_ms: 20, max_ms: 50, allow_hosts: ["127.0.0.1"], concurrency: 2 };
  const ports = { queues: chain.open(), keys: TEST_KEYS, store, version: "0", lookMs: 100, log: pino({ level: "silent" }), settings };
  const senders = startWebhookSenders(ports);
  onTestFinished(() => senders.close({ graceMs: 3_000 }));
  await chain.worker(failsBefore(1, store));
  chain.steps();
  await chain.add(activationOf("act-1"));
  const result = await chain.over("act-1", 1);

  await vi.waitFor(() => expect(receiver.received).not.toEqual([]), { timeout: 60_000, interval: 50 });
  const told = JSON.parse(receiver.received[0]!.body) as { type: string; data: ActivationResult };
  expect(told).toMatchObject({ type: "activation.completed", data: { generation: 1, reward: result.reward, rollout: { verified: true } } });
  expect(result.reward).toEqual(expect.any(Number));
  const counts = await queues.webhook("all").getJobCounts();
  expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(1);
});
