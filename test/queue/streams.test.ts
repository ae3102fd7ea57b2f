// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { announceEnd, followRun } from "../../src/queue/ended.ts";
import { progressPublisher, publishProgress, readProgress, untilBegun } from "../../src/queue/progress.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { resultOf } from "../support/result-documents.ts";
import { activationOf, startRig, TEST_KEYS, type Rig } from "./rig.ts";

let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
  await rig.queues.redis.ping(); // progress is dropped until the connection stands
});
afterEach(() => rig.close());

it("follows a run from the beginning, over a restart of Redis, and from where it was", async () => {
  const stop = new AbortController();
  const seen: string[] = [];
  let last = "";
  await announceEnd(rig.queues, resultOf("act-1"));
  const following = (async () => {
    for await (const end of followRun(rig.queues, "run-1", { signal: stop.signal })) {
      seen.push(end.activation_id);
      last = end.id;
    }
  })();
  await vi.waitFor(() => expect(seen).toEqual(["act-1"]), { timeout: 20_000 });
  await rig.redis.kill9();
  await rig.redis.restart();
  await announceEnd(rig.queues, resultOf("act-2"));
  await vi.waitFor(() => expect(seen).toEqual(["act-1", "act-2"]), { timeout: 20_000 });
  stop.abort();
  await following;

  await announceEnd(rig.queues, resultOf("act-3", { status: "failed" }));
  const more = followRun(rig.queues, "run-1", { from: last, signal: new AbortController().signal });
  expect((await more.next()).value).toMatchObject({ activation_id: "act-3", generation: 0, status: "failed" });
  await more.return(undefined);
});

it("keeps the newest progress, thins out what comes too fast, never a change of stage, and drops what is too large", async () => {
  const publish = progressPublisher(rig.queues, "act-1");
  for (let n = 0; n < 50; n += 1) publish({ stage: "running", attempt: 0, note: `note ${n}` });
  publish({ stage: "collecting", attempt: 0 });
  await publishProgress(rig.queues, "act-1", { stage: "running", attempt: 0, note: "x".repeat(3_000) });
  const entries = await readProgress(rig.queues.redis, "act-1");
  expect(entries.map(({ stage, note }) => [stage, note])).toEqual([
    ["running", "note 0"],
    ["collecting", undefined],
  ]);
  for (let n = 0; n < 1_500; n += 1) await publishProgress(rig.queues, "act-1", { stage: "running", attempt: 0, note: String(n) });
  expect(await rig.queues.redis.xlen("{rollcall}:progress:act-1")).toBeLessThan(1_200);
  expect(await rig.queues.redis.pttl("{rollcall}:progress:act-1")).toBeGreaterThan(0);
});

it("never delays or fails a run whose Redis is away", async () => {
  await rig.redis.kill9();
  await vi.waitFor(() => expect(rig.queues.redis.status).not.toBe("ready"), { timeout: 10_000 });
  const begun = performance.now();
  progressPublisher(rig.queues, "act-1")({ stage: "running", attempt: 0 });
  await publishProgress(rig.queues, "act-1", { stage: "running", attempt: 0 });
  expect(performance.now() - begun).toBeLessThan(2_000);
  await rig.redis.restart();
});

it("tells when Codex was started for an activation, or that it ended before", async () => {
  const waiting = untilBegun(rig.queues, "act-1", { signal: new AbortController().signal });
  let begun = false;
  const noted = waiting.then(() => (begun = true));
  await publishProgress(rig.queues, "act-1", { stage: "starting", attempt: 0 });
  expect(begun).toBe(false);
  await publishProgress(rig.queues, "act-1", { stage: "running", attempt: 0 });
  await noted;
  await rig.sentinel();
  await enqueueActivations(rig.queues, [activationOf("act-2")], { keys: TEST_KEYS });
  await (await rig.queues.activations.getJob("act-2"))!.remove();
  await untilBegun(rig.queues, "act-2", { signal: new AbortController().signal });
  await untilBegun(rig.queues, "act-3", { signal: AbortSignal.abort() });
});
