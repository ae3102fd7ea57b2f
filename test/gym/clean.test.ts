// SPDX-License-Identifier: Apache-2.0
import { expect, it, onTestFinished } from "vitest";
import { cleanSessions } from "../../src/gym/clean.ts";
import type { SessionRecord } from "../../src/gym/session-state.ts";
import { sessionStore } from "../../src/gym/session-store.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { startTestRedis } from "../support/redis.ts";

const HOUR_MS = 3_600_000;
const episode_id = { rollout_id: "r", attempt: 0 };
const closed: SessionRecord = { state: "closed", episode_id, activation_id: null };
const open: SessionRecord = { state: "open", episode_id, seed: { key_id: "k", hmac: "h" }, body: null, draft: { activation_id: "gym-1" } };

it("removes sessions that were closed before, keeps open ones unless all are to go, and leaves no key of those", async () => {
  const redis = await startTestRedis();
  const queues = openQueues(redis.target, { onError: () => undefined });
  onTestFinished(async () => {
    await queues.close();
    await redis.stop();
  });
  const sessions = sessionStore(queues, HOUR_MS);
  const records: SessionRecord[] = Array.from({ length: 120 }, (_, index) => (index % 3 === 0 ? open : closed));
  for (const [index, record] of records.entries()) {
    await sessions.change(`s${index}`, () => ({ answer: null, change: { record, ...(record === closed ? { receiptMs: HOUR_MS } : {}) } }));
  }
  expect(await sessions.read("s1")).toEqual({ record: closed, receipt: true });
  const [soon, earlier] = [Date.now() + HOUR_MS, Date.now() - HOUR_MS];
  const kept = async (): Promise<number> => (await queues.redis.keys("{rollcall}:agent-*")).length;

  expect(await cleanSessions(queues, { before: earlier, dryRun: false })).toBe(0);
  expect(await cleanSessions(queues, { before: soon, dryRun: true })).toBe(80);
  expect(await kept()).toBe(120 + 80 + 1);
  expect(await cleanSessions(queues, { before: soon, dryRun: false })).toBe(80);
  expect(await kept()).toBe(40 + 1);
  expect(await sessions.read("s0")).toEqual({ record: open, receipt: false });
  expect(await sessions.read("s1")).toBeNull();
  expect(await cleanSessions(queues, { before: null, dryRun: false })).toBe(40);
  expect(await kept()).toBe(0);
});
