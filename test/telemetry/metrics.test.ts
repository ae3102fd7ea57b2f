// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { AttemptReport } from "../../src/activation/settle.ts";
import { CAUSE_CODES, type Failure } from "../../src/contract/failure.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { usageOfAttempts } from "../../src/contract/usage.ts";
import { announceEnd } from "../../src/queue/ended.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { readFleet } from "../../src/queue/fleet-reading.ts";
import { setRunGate } from "../../src/queue/gate.ts";
import { activationOf, completes, runsUntilStopped, startRig, TEST_KEYS } from "../queue/rig.ts";
import { startApiRig } from "../api/rig.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { promtool, samplesOf } from "./promtool.ts";
import { serverRegistry, workerRegistry } from "./registries.ts";
import { expositionOf } from "../../src/telemetry/exposition.ts";

const FAILURE: Failure = {
  failure_kind: "agent_run_error",
  cause_code: "unknown",
  server_names: [],
  stage: "agent",
  failure_reason: "",
  terminal: false,
  status_code: 502,
};
const SECRET = "Bearer tok-that-is-no-label";
/** What others choose, as it could come from a damaged record, another version, or somebody with evil in mind. */
const hostile = (index: number): string => `run-${index}"} /etc/passwd ${SECRET}\n`;

/** A label's worth of series: one line of text each, histograms' buckets included. */
const series = (text: string): number => text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length;

describe("whatever comes, the number of series stays within bounds, and no word of others is among them", () => {
  it("of a worker", async () => {
    const { registry, metrics } = workerRegistry();
    const told = (index: number): void => {
      const failure = { ...FAILURE, failure_kind: hostile(index) as never, cause_code: hostile(index) };
      const result = resultOf(hostile(index), { status: hostile(index) as never, cause_class: hostile(index) as never, failure });
      const call = { kind: "tool_call", server_name: hostile(index), tool_name: hostile(index), status: hostile(index), duration_ms: 1 };
      const report = {
        outcome: result,
        worker: { id: hostile(index) },
        observations: { source: "codex", records: [call], gaps: [] },
        evidence: null,
        timing: { queued_ms: 1, setup_ms: 1, run_ms: 1, collect_ms: 1 },
        response: null,
        usage: null,
      } as unknown as AttemptReport;
      metrics.ended(report, { kind: "ended", result }, index);
      metrics.ended(report, { kind: "handed_back", reason: hostile(index) as never }, index);
      metrics.stageEnded(hostile(index), index);
      metrics.room({ disk: [{ path: hostile(index), mb: index }], memory_mb: 1, pids: 1 }, false);
    };
    told(0);
    const before = series(await registry.metrics());
    for (let index = 1; index < 500; index++) told(index);
    const text = await registry.metrics();
    expect(series(text)).toBe(before);
    expect(text).not.toMatch(/passwd|run-\d|tok-that/);
    expect(samplesOf(text, "rollcall_attempts_ended_total")).toMatchObject({
      'outcome="overtaken",status="other",cause_class="other",failure_kind="other",cause_code="other"': 500,
    });
    expect(promtool(["check", "metrics"], text)).toBe("");
  });

  it("of a worker that sees every cause there is", async () => {
    const { registry, metrics } = workerRegistry();
    const before = series(await registry.metrics());
    for (const cause_code of CAUSE_CODES) {
      const attempt = attemptOf(0, { status: "failed", failure: { ...FAILURE, cause_code } });
      const report = { ...attempt, outcome: attempt, timing: { queued_ms: null, setup_ms: 1, run_ms: 1, collect_ms: 1 }, response: null };
      metrics.ended(report as unknown as AttemptReport, { kind: "retry", attempt }, 0);
    }
    expect(series(await registry.metrics()) - before).toBeLessThan(CAUSE_CODES.length + 100);
  });

  it("of a server, whose requests go to paths of any kind", async () => {
    const rig = await startApiRig();
    const { registry, answered, refresh } = serverRegistry(() => readFleet(rig.queues, { servers: [] }));
    const server = await rig.serve({ metrics: { answered, exposition: expositionOf(registry, refresh) } });
    const ask = (path: string, method = "GET"): Promise<Response> =>
      fetch(server.origin + path, { method, headers: { authorization: `Bearer ${rig.key}`, traceparent: hostile(1).slice(0, 5) } });
    for (let index = 0; index < 10; index++) {
      await ask(`/v1/activations/act-${index}`);
      await ask(`/v1/runs/run-${index}`);
      await ask(`/no/such/path-${index}`);
      await ask(`/v1/none-${index}`, "PROPFIND");
    }
    const text = await (await ask("/metrics")).text();
    expect(samplesOf(text, "rollcall_http_request_duration_seconds_count")).toEqual({
      'method="GET",route="/v1/activations/:id",status="4xx"': 10,
      'method="GET",route="/v1/runs/:run_id",status="4xx"': 10,
      'method="GET",route="none",status="4xx"': 10,
      'method="other",route="none",status="4xx"': 10,
    });
    expect(text).not.toMatch(/act-\d|run-\d|path-\d|none-\d|PROPFIND/);
    expect(promtool(["check", "metrics"], text)).toBe("");
  });

  it("of the whole queue, whose runs, results queues and model servers anybody names", async () => {
    const rig = await startRig();
    onTestFinished(() => rig.close());
    for (let index = 0; index < 30; index++) {
      const reply_to = index < 2 ? "results" : `results-of-run-${index}`;
      await rig.queues.redis.sadd("{rollcall}:result-queues", reply_to);
      await rig.queues.results(reply_to).add("result", resultOf(`act-${index}`, {}));
      await rig.queues.redis.sadd("{rollcall}:refusing-servers", `https://model-${index}.example`);
      await rig.queues.redis.hincrby("{rollcall}:end-counts", `${hostile(index)}/a/b/c`, 1);
    }
    const { registry, refresh } = serverRegistry(() => readFleet(rig.queues, { servers: ["https://model.example"] }));
    await refresh();
    const text = await registry.metrics();
    expect(samplesOf(text, "rollcall_fleet_results")).toMatchObject({
      'queue="results",state="unread"': 2,
      'queue="other",state="unread"': 28,
    });
    expect(Object.keys(samplesOf(text, "rollcall_fleet_model_sessions"))).toHaveLength(4);
    expect(text).not.toMatch(/run-\d|model-\d|passwd|tok-that/);
    expect(series(text)).toBeLessThan(150);
  });
});

it("tokens are counted by kind as attempts end: failed ones, those that are tried again, those that another worker overtook, and the last one alone of a result", async () => {
  const { registry, metrics } = workerRegistry();
  const usage = {
    input_tokens: 500,
    output_tokens: 100,
    total_tokens: 600,
    cached_input_tokens: 50,
    cache_write_input_tokens: 7,
    reasoning_output_tokens: 20,
  };
  const made = [0, 1, 2].map((attempt) => attemptOf(attempt, { status: "failed", failure: FAILURE, usage }));
  const worker = made[0]!.worker;
  const timing = { queued_ms: null, setup_ms: 1, run_ms: 1, collect_ms: 1 };
  const threads = [{ model_calls: 1 }, { model_calls: 2 }];
  const records = [{ kind: "agent_invocation", model_calls: [{ response_id: "r" }] }];
  const reportOf = (id: string) =>
    ({
      outcome: made[0],
      worker: { ...worker, id },
      observations: { records },
      evidence: { threads },
      timing,
      usage,
      response: { usage },
    }) as unknown as AttemptReport;
  metrics.ended(reportOf(worker.id), { kind: "retry", attempt: made[0]! }, 0);
  metrics.ended(reportOf(worker.id), { kind: "back_off", attempt: made[1]!, wait_ms: null }, 0);
  const result = resultOf("act-1", { status: "failed", failure: FAILURE, attempts: made, usage: usageOfAttempts(made) });
  metrics.ended(reportOf(worker.id), { kind: "ended", result }, 0);
  metrics.ended(reportOf("w-overtaken"), { kind: "ended", result }, 0);
  const text = await registry.metrics();
  expect(samplesOf(text, "rollcall_tokens_total")).toEqual({
    'kind="input"': 2_000,
    'kind="cached_input"': 200,
    'kind="cache_write_input"': 28,
    'kind="output"': 400,
    'kind="reasoning_output"': 80,
  });
  expect(samplesOf(text, "rollcall_model_calls_total")).toMatchObject({ 'outcome="answered"': 12 });
});

describe("the numbers of the whole queue", () => {
  it("are the same from every process, and say where activations are", async () => {
    const rig = await startRig();
    onTestFinished(() => rig.close());
    await setRunGate(rig.queues, "paused-run", { paused: true });
    await rig.worker(
      runsUntilStopped(() => undefined),
      { concurrency: 2 },
    );
    const of = (count: number, run_id: string) =>
      Array.from({ length: count }, (_, index) => activationOf(`${run_id}-${index}`, { run_id }));
    await enqueueActivations(rig.queues, of(3, "paused-run"), { keys: TEST_KEYS });
    await vi.waitFor(async () => expect(await rig.queues.redis.zcard("{rollcall}:parked:paused-run")).toBe(3), { timeout: 60_000 });
    await enqueueActivations(rig.queues, of(5, "running-run"), { keys: TEST_KEYS });
    const readings = await vi.waitFor(
      async () => {
        const texts = await Promise.all(
          [rig.queues, rig.open()].map(async (queues) => {
            const { registry, refresh } = serverRegistry(() => readFleet(queues, { servers: [] }));
            await refresh();
            return registry.metrics();
          }),
        );
        const fleet = texts.map((text) => samplesOf(text, "rollcall_fleet_activations"));
        const expected = { waiting: 3, running: 2, parked: 3, model: 0, delayed: 0 };
        expect(fleet[0]).toEqual(Object.fromEntries(Object.entries(expected).map(([state, count]) => [`state="${state}"`, count])));
        expect(fleet[1]).toEqual(fleet[0]);
        return texts;
      },
      { timeout: 60_000 },
    );
    const [text] = readings as [string];
    expect(samplesOf(text, "rollcall_fleet_runs_held")).toEqual({ 'by="pause"': 1, 'by="breaker"': 0, 'by="limit"': 0 });
    expect(samplesOf(text, "rollcall_fleet_worker_slots")).toEqual({ 'state="total"': 2, 'state="free"': 0 });
    const oldest = samplesOf(text, "rollcall_fleet_oldest_waiting_seconds")[""]!;
    expect(oldest).toBeGreaterThan(0);
    const [first] = await rig.queues.activations.getPrioritized(0, 0);
    await rig.queues.redis.hset(`{rollcall}:activations:${first!.id}`, "timestamp", first!.timestamp - 3_600_000);
    const later = (await readFleet(rig.queues, { servers: [] })).oldestWaitingSeconds;
    expect(later - oldest).toBeGreaterThan(3_599);
  });

  it("count an end once, also when it is recorded twice, and each generation anew", async () => {
    const rig = await startRig();
    onTestFinished(() => rig.close());
    await rig.worker(completes(rig.store));
    await rig.sentinel();
    await enqueueActivations(rig.queues, [activationOf("act-1")], { keys: TEST_KEYS });
    const result: ActivationResult = await rig.ended("act-1");
    await announceEnd(rig.queues, result);
    await announceEnd(rig.queues, { ...result, activation_id: "act-2", status: "cancelled", cause_class: "cancelled" });
    const { ended } = await readFleet(rig.queues, { servers: [] });
    expect(new Set(ended.map(({ labels, count }) => `${labels.status} ${labels.cause_class} ${count}`))).toEqual(
      new Set(["cancelled cancelled 1", "completed none 1"]),
    );
    await enqueueActivations(rig.queues, [activationOf("act-1")], { keys: TEST_KEYS, generation: 1 });
    await vi.waitFor(
      async () =>
        expect((await readFleet(rig.queues, { servers: [] })).ended.find(({ labels }) => labels.status === "completed")?.count).toBe(2),
      { timeout: 60_000 },
    );
  });

  it("are left out while Redis is away, which is told, and come again", async () => {
    let isAway = false;
    const rig = await startRig();
    onTestFinished(() => rig.close());
    const { registry, refresh } = serverRegistry(() =>
      isAway ? Promise.reject(new Error("away")) : readFleet(rig.queues, { servers: [] }),
    );
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const told = async (): Promise<[up: number | undefined, names: number]> => {
      vi.advanceTimersByTime(4_000); // a reading is good for three seconds
      await refresh();
      const text = await registry.metrics();
      return [samplesOf(text, "rollcall_redis_up")[""], [...text.matchAll(/^rollcall_fleet_/gm)].length];
    };
    const [up, names] = await told();
    expect([up, names > 15]).toEqual([1, true]);
    isAway = true;
    expect(await told()).toEqual([0, 0]);
    isAway = false;
    expect(await told()).toEqual([1, names]);
  });
});

it("a claim that is lost while its session runs is told once, and why", async () => {
  const rig = await startRig();
  onTestFinished(() => rig.close());
  const lost: string[] = [];
  let begun = 0;
  await rig.worker(
    runsUntilStopped(() => (begun += 1)),
    { onLockLost: (how) => lost.push(how) },
  );
  await enqueueActivations(rig.queues, [activationOf("act-1")], { keys: TEST_KEYS });
  await vi.waitFor(() => expect(begun).toBe(1), { timeout: 60_000 });
  await rig.queues.redis.set("{rollcall}:activations:act-1:lock", "somebody else's");
  await vi.waitFor(() => expect(lost).toEqual(["renewal_failed"]), { timeout: 60_000 });
});
