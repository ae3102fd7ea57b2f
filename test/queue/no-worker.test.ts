// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it, vi } from "vitest";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { cancelActivation } from "../../src/queue/cancel.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { missingIn, remedyFor, type Need } from "../../src/queue/needs.ts";
import { pauseRun } from "../../src/queue/pause.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { workersAbsentMs, type WorkerFacts } from "../../src/queue/worker-lease.ts";
import { runsAgain } from "../../src/rollout/again.ts";
import { factsOf } from "../../src/rollout/facts.ts";
import { activationOf, completes, startRig, TEST_KEYS, type Rig, type Run } from "./rig.ts";

const WAIT = { timeout: 40_000, interval: 50 };
const never: Run = () => Promise.reject(new Error("must not run"));
let rig: Rig;
afterEach(() => rig.close());

const add = (facts: Record<string, unknown> = {}, id = "act-a") =>
  enqueueActivations(rig.queues, [activationOf(id, facts)], { keys: TEST_KEYS });

describe("without any worker", () => {
  it("what waits ends failed after the deadline, once whoever looks, to be run again on resume", async () => {
    rig = await startRig({ no_worker_deadline_ms: 1_500 });
    const ids = ["act-a", "act-b", "act-c"];
    for (const id of ids) await add({ reply_to: "results" }, id);
    await add({ run_id: "run-paused" }, "act-paused");
    await pauseRun(rig.queues, "run-paused", { by: "test", at: "", reason: "" });
    for (let n = 0; n < 3; n += 1) await rig.sentinel();
    for (const id of ids) {
      const result = await rig.ended(id);
      expect(result).toMatchObject({
        status: "failed",
        cause_class: "infrastructure",
        failure: { failure_kind: "transport_unreachable", cause_code: "no_worker", stage: "admission", terminal: false, status_code: 503 },
        attempts: [],
        artifacts: [],
      });
      expect(result.failure!.failure_reason).toMatch(/^no worker has lived for [1-9]\d* s \(setting queue\.no_worker_deadline_seconds\)$/);
      expect(runsAgain(factsOf(result)!, "infra")).toBe(true);
    }
    expect(await rig.queues.results("results").getJobCounts("waiting")).toEqual({ waiting: 3 });
    expect(await runStatus(rig.queues, "run-paused")).toMatchObject({ waiting: 1, ended: {} });
  });

  it("waits for ever by default; a worker that lives again ends the absence", async () => {
    rig = await startRig();
    await add();
    await rig.sentinel();
    await vi.waitFor(async () => expect(await workersAbsentMs(rig.queues)).toBeGreaterThan(2_500), WAIT); // the sentinel has looked
    expect(await rig.queues.activations.getJobState("act-a")).toBe("prioritized");
    await rig.worker(completes(rig.store));
    expect(await workersAbsentMs(rig.queues)).toBeNull();
    expect((await rig.ended("act-a")).status).toBe("completed");
  });

  it("what was queued later waits its own time out; an absence is forgotten when nobody looks", async () => {
    rig = await startRig({ no_worker_deadline_ms: 1_500 });
    await rig.queues.redis.set("{rollcall}:no-worker", Date.now() - 3_600_000); // an hour, looked at all the time
    await rig.sentinel();
    const before = Date.now();
    await add();
    expect(Date.parse((await rig.ended("act-a")).ended_at) - before).toBeGreaterThanOrEqual(1_500);
    const forgottenInMs = await rig.queues.redis.pttl("{rollcall}:no-worker");
    expect([forgottenInMs > 0, forgottenInMs <= 180_000]).toEqual([true, true]);
  });
});

describe("workers that cannot run it", () => {
  const needs: Need[] = [
    { kind: "codex_version", value: "9.9.9" },
    { kind: "provider", value: "moon" },
  ];
  const worker = (facts: Partial<WorkerFacts>): WorkerFacts => ({
    worker_id: "w",
    host: "h",
    pid: 1,
    providers: ["host"],
    codex_versions: ["0.144.4"],
    key_ids: [],
    schema_minor: 0,
    store_id: "s",
    classes: [],
    held_back: null,
    ...facts,
  });

  it.each([
    ["one has all", [worker({}), worker({ codex_versions: ["9.9.9"], providers: ["moon"] })], null],
    ["nobody has one of them", [worker({ codex_versions: ["9.9.9"] })], [needs[1]]],
    ["each is there, but not together", [worker({ codex_versions: ["9.9.9"] }), worker({ providers: ["moon"] })], needs],
    ["there is no worker", [], needs],
  ])("%s", async (_, workers, missing) => {
    rig ??= await startRig();
    expect(missingIn(workers, needs)).toEqual(missing);
  });

  it("do not wait for each other when each of them lacks something else", async () => {
    rig = await startRig({ no_capable_worker_ms: 1_000 });
    await rig.sentinel();
    await rig.worker(never, { facts: { codex_versions: ["9.9.9"] } });
    await rig.worker(never, { facts: { providers: ["moon"] } });
    await add({ sandbox: { provider: "moon" }, codex: { version: "9.9.9" } });
    const { failure } = await rig.ended("act-a");
    expect(failure).toMatchObject({ cause_code: "sandbox_failed" });
    expect(failure!.failure_reason).toMatch(
      /^no live worker could run it for [1-9]\d* s; missing: provider moon, codex_version 9\.9\.9 \(on a worker's /,
    );
  });

  it.each([
    ["0.144.4", "rollcall codex install 0.144.4)", "unknown_version"],
    ["9.9.9", 'rollcall codex install 9.9.9, and unknown_version = "try"', "install 9.9.9)"],
  ])("are told how to get Codex %s, and whether it has a profile", async (value, told, untold) => {
    rig ??= await startRig();
    const text = remedyFor([
      { kind: "provider", value: "moon" },
      { kind: "codex_version", value },
    ]);
    expect(text).toContain(told);
    expect(text).not.toContain(untold);
    expect(remedyFor([{ kind: "provider", value: "moon" }])).toBe("");
  });

  it("leave a version to the worker that holds it beside its default, and run it there", async () => {
    rig = await startRig();
    await rig.sentinel();
    const ran: string[] = [];
    const tells =
      (who: string): Run =>
      (claim) => {
        ran.push(`${claim.activation.activation_id} ${who}`);
        return completes(rig.store)(claim);
      };
    await rig.worker(tells("newest only"), { facts: { worker_id: "w-1", codex_versions: ["0.171.0"] } });
    await rig.worker(tells("both"), { facts: { worker_id: "w-2", codex_versions: ["0.171.0", "0.144.4"] } });
    const old = Array.from({ length: 6 }, (_, index) => `act-old-${index}`);
    for (const id of old) await add({ codex: { version: "0.144.4" } }, id);
    for (const id of old) expect((await rig.ended(id)).status).toBe("completed");
    expect(ran.toSorted()).toEqual(old.map((id) => `${id} both`));
  });

  it("are told at enqueue, and by status, and can be cancelled", async () => {
    rig = await startRig();
    const otherKeys = parseSecretKeys(Buffer.alloc(32, 1).toString("base64"));
    expect((await add({ codex: { version: "9.9.9" } }, "act-early"))[0]).toEqual({ activation_id: "act-early", outcome: "added" });
    await rig.sentinel();
    await rig.worker(never, { facts: { codex_versions: ["0.144.4"] } });
    const [plain, version, key] = await enqueueActivations(
      rig.queues,
      [activationOf("act-other", { run_id: "run-2", codex: { version: "8.8.8" } }), activationOf("act-b", { codex: { version: "9.9.9" } })],
      { keys: otherKeys },
    ).then(async (answers) => [...answers, (await add({ codex: { version: "9.9.9" } }, "act-b"))[0]!]);
    expect(plain!.no_worker_for).toBe("codex_version 8.8.8");
    expect(version!.no_worker_for).toBe("codex_version 9.9.9");
    expect(key).toEqual({ activation_id: "act-b", outcome: "joined" });
    const [secret] = await enqueueActivations(rig.queues, [activationOf("act-c", { run_id: "run-3", model: { api_key: "sk-1" } })], {
      keys: otherKeys,
    });
    expect(secret!.no_worker_for).toContain("secret_key ");

    await vi.waitFor(async () => {
      const status = await runStatus(rig.queues, "run-1");
      expect(status).toMatchObject({ waiting: 0, delayed: 2, delayed_for: { able_worker: 2, model_server: 0, next_attempt: 0 } });
    }, WAIT);
    await cancelActivation(rig.queues, "act-b", { by: "test", at: "", reason: "" });
    expect((await rig.ended("act-b")).status).toBe("cancelled");
  });
});
