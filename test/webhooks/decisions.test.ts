// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { retryAfterMs } from "../../src/webhooks/post.ts";
import { deliveryId, wants } from "../../src/webhooks/push.ts";
import { sendPauseMs } from "../../src/webhooks/send.ts";
import { newWebhookSecret, webhookKey } from "../../src/webhooks/sign.ts";

it("an end is wanted when its run, its results queue and its outcome all are", () => {
  const end = { run_id: "r", status: "failed" } as const;
  const all = { run_id: null, reply_to: null, events: ["activation.failed" as const] };
  expect(wants(all, end, null)).toBe(true);
  expect(wants({ ...all, run_id: "r", reply_to: ["results", "results-b"] }, end, "results-b")).toBe(true);
  for (const other of [{ run_id: "s" }, { reply_to: ["results"] }, { events: ["activation.completed" as const] }])
    expect(wants({ ...all, ...other }, end, "results-b")).toBe(false);
  expect(wants({ ...all, reply_to: ["results"] }, end, null)).toBe(false);
});

it("a delivery's id is the same for one end of one webhook, another for any other, and has no dot", () => {
  const end = { activation_id: "a.g1", generation: 0 };
  expect(deliveryId("w", end)).toBe(deliveryId("w", { ...end }));
  const others = [deliveryId("v", end), deliveryId("w", { ...end, generation: 1 }), deliveryId("w", { ...end, activation_id: "b" })];
  expect(new Set([deliveryId("w", end), ...others]).size).toBe(4);
  expect(deliveryId("w", end)).toMatch(/^msg_[0-9a-f]{32}$/);
});

it("pauses grow fourfold up to the longest, are spread over their second half, and never end before what the receiver asked for", () => {
  const settings = { base_ms: 5_000, max_ms: 60_000 };
  expect([1, 2, 3, 4].map((n) => sendPauseMs(settings, n, null, 0))).toEqual([2_500, 10_000, 30_000, 30_000]);
  expect(sendPauseMs(settings, 1, null, 0.9999)).toBeCloseTo(5_000, -1);
  expect(sendPauseMs(settings, 1, 30_000, 0)).toBe(30_000);
  expect(sendPauseMs(settings, 1, 10 ** 12, 0)).toBe(86_400_000);
});

it("Retry-After is seconds or a date", () => {
  const now = Date.parse("2026-11-30T00:00:00Z");
  expect(["120", "Mon, 30 Nov 2026 00:01:00 GMT", "Sun, 29 Nov 2026 00:00:00 GMT", "soon"].map((text) => retryAfterMs(text, now))).toEqual([
    120_000,
    60_000,
    0,
    null,
  ]);
});

it("a secret is 24 to 64 bytes in base64", () => {
  expect(webhookKey(newWebhookSecret())).toHaveLength(32);
  expect(webhookKey(Buffer.alloc(24).toString("base64"))).toHaveLength(24);
  for (const bad of [
    "",
    "whsec_",
    "whsec_c2hvcnQ=",
    `whsec_${Buffer.alloc(65).toString("base64")}`,
    "whsec_not base64 but long enough to be so",
  ])
    expect(webhookKey(bad)).toBeNull();
});
