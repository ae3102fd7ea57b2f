// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { request, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { serveOnLoopback } from "../../examples/stand-ins/loopback.ts";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startBrokenServer, startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, step } from "../../examples/stand-ins/script.ts";
import { STAGES } from "../../src/activation/telemetry.ts";
import { hashApiKey, newApiKey } from "../../src/api/api-keys.ts";
import { callApi } from "../api/rig.ts";
import { startTestRedis } from "../support/redis.ts";
import { rollcall, startRollcall, type RunningCommand } from "../support/rollcall-command.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { promtool, samplesOf } from "./promtool.ts";
import { startSpanReceiver, type ReceivedSpan, type SpanReceiver } from "./span-receiver.ts";

// Real processes of each kind, a real Codex in a real sandbox, a real tool server; the model is a stand-in. One session comes by the
// API and completes, one comes from a command and fails; then all of it is looked at.
const root = suiteDir();
const MODEL_KEY = "model-key-that-no-span-holds";
const SECRET_KEY = randomBytes(32).toString("base64");
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
const [scraper, producer] = [newApiKey(), newApiKey()];
const closing: (() => unknown)[] = [];
let token: string;
let spans: SpanReceiver;
let model: ModelServer;
const toolHeaders: IncomingHttpHeaders[] = [];
const metrics: { server: string; worker: string; denied: number[] } = { server: "", worker: "", denied: [] };

beforeAll(async () => {
  const redis = await startTestRedis({ tcp: { password: "redis-password-of-the-test" } });
  closing.push(() => redis.stop());
  spans = await startSpanReceiver();
  model = await startModelServer({ apiKey: MODEL_KEY });
  const [office, down] = [await startOfficeTools(), await startBrokenServer("refuses")];
  const listening = await serveOnLoopback((incoming, outgoing) => {
    toolHeaders.push(incoming.headers);
    const { method, url, headers } = incoming;
    const onward = request(new URL(url ?? "", office.url), { ...(method === undefined ? {} : { method }), headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  closing.push(() => Promise.all([spans, model, office, down, listening].map((server) => server.close())));
  token = office.mintToken("session-of-the-trace");
  const keysFile = join(root, "keys");
  writeFileSync(keysFile, `prometheus read ${hashApiKey(scraper)}\nproducer enqueue ${hashApiKey(producer)}\n`);
  const env = {
    REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
    ROLLCALL_SECRET_KEY: SECRET_KEY,
    ROLLCALL_ARTIFACTS: join(root, "store"),
    ROLLCALL_API_PORT: "0",
    ROLLCALL_API_KEYS_FILE: keysFile,
    ROLLCALL_METRICS: "127.0.0.1:0",
    ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
    XDG_STATE_HOME: join(root, "state"),
    OTEL_EXPORTER_OTLP_ENDPOINT: spans.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    TMPDIR: root,
  };
  const server = startRollcall([], { env, entry: "workers/api.js" });
  const worker = startRollcall([], { env: { ...env, OPENAI_API_KEY: MODEL_KEY }, entry: "workers/activation.js" });
  closing.unshift(() => [server, worker].map(({ child }) => child.kill("SIGKILL")));
  const origin = await found(server, () => /listening on (\S+)/.exec(server.stdout())?.[1]);
  const workerOrigin = await found(worker, () => /"origin":"([^"]+)","msg":"metrics are served"/.exec(worker.stderr())?.[1]);

  const grantTo = (url: string): object => ({
    type: "mcp",
    name: "office-of-the-trace",
    required: true,
    connection: { transport: "streamable_http", url, headers: { "X-NeMo-Gym-Session-Token": token } },
  });
  const finish = mcp("office-of-the-trace", "finish", { paths: ["/workspace/a.txt"], reason: "It is written." });
  const activation = {
    activation_id: "act-traced",
    run_id: "run-traced",
    task_id: { taskset: "t", task_id: "1" },
    input: `Finish.\n${scriptLine({ steps: [step(finish), step(say(`done, ${token}`))] })}`,
    model: { name: "stand-in", base_url: model.captureBaseUrl },
    tool_grants: [grantTo(`${listening.origin}/mcp`)],
    reply_to: "results-of-run-traced",
    traceparent: `00-${TRACE}-${CALLER}-01`,
    metadata: { note: "producers-own-words" },
  };
  expect((await callApi(origin, "/v1/activations", { key: producer, body: activation })).status).toBe(202);
  const tasks = join(root, "tasks.jsonl");
  writeFileSync(tasks, `${JSON.stringify({ id: "down", input: "Never begins.", max_attempts: 1, tool_grants: [grantTo(down.url)] })}\n`);
  const queued = await rollcall(["enqueue", tasks, "--run-id", "run-failing", "--model", "stand-in"], { env });
  expect(queued.code, queued.stderr).toBe(0);
  const completed = await callApi(origin, "/v1/activations/act-traced/result?wait=200", { key: producer });
  expect(completed.body).toMatchObject({ status: "completed" });
  const failed = await callApi(origin, "/v1/activations/act-run-failing-down/result?wait=200", { key: producer });
  expect(failed.body).toMatchObject({ status: "failed" });

  for (const [path, key] of [
    [`${origin}/metrics`, null],
    [`${origin}/metrics`, "rck_wrong"],
    [`${workerOrigin}/metrics`, null],
    [`${workerOrigin}/metrics`, "rck_wrong"],
  ] as const)
    metrics.denied.push((await callApi(path, "", { key })).status);
  metrics.worker = String((await callApi(workerOrigin, "/metrics", { key: scraper })).body);
  // Recorded by whichever process is first, and perhaps a moment after the result can be had.
  await vi.waitFor(
    async () => {
      metrics.server = String((await callApi(origin, "/metrics", { key: scraper })).body);
      expect(samplesOf(metrics.server, "rollcall_fleet_results")).toMatchObject({ 'queue="other",state="unread"': 1 });
      expect(Object.values(samplesOf(metrics.server, "rollcall_fleet_activations_ended_total"))).toHaveLength(2);
    },
    { timeout: 30_000, interval: 500 },
  );
  for (const command of [worker, server]) {
    command.child.kill("SIGTERM");
    expect((await command.ended).code).toBe(0);
  }
}, 240_000);
afterAll(async () => {
  for (const close of closing) await close();
});

function found(command: RunningCommand, look: () => string | undefined): Promise<string> {
  return vi.waitFor(
    () => {
      const text = look();
      expect(text, command.stderr()).toBeDefined();
      return text!;
    },
    { timeout: 60_000, interval: 50 },
  );
}

function one(of: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const named = of.filter((span) => span.name === name);
  expect(
    named.map((span) => span.name),
    `one span ${name} among ${of.map((span) => span.name).join(", ")}`,
  ).toEqual([name]);
  return named[0]!;
}

describe("the trace of an activation", () => {
  it("goes from its producer's own span over the server, the worker and each stage to the recorded end", () => {
    const trace = spans.spans.filter(({ traceId }) => traceId === TRACE);
    const enqueue = one(trace, "enqueue activation");
    expect(enqueue).toMatchObject({ parentSpanId: CALLER, service: "rollcall-server", kind: 4, failed: null });
    const claim = one(trace, "process activations");
    expect(claim).toMatchObject({ parentSpanId: enqueue.spanId, service: "rollcall-worker", kind: 5, failed: null });
    const attempt = one(trace, "attempt");
    expect(attempt).toMatchObject({ parentSpanId: claim.spanId, service: "rollcall-worker", failed: null });
    expect(attempt.attributes).toMatchObject({
      "rollcall.activation_id": "act-traced",
      "rollcall.outcome": "ended",
      "rollcall.status": "completed",
      "rollcall.attempt": 0,
    });
    const stages = trace.filter(({ parentSpanId }) => parentSpanId === attempt.spanId).map(({ name }) => name);
    expect(stages.sort()).toEqual([...STAGES].sort());
    const recording = one(trace, "process final");
    expect(recording.parentSpanId).toBe(enqueue.spanId);
    const end = one(trace, "record end");
    expect(end).toMatchObject({ parentSpanId: recording.spanId, service: recording.service, failed: null });
    expect(one(trace, "deliver")).toMatchObject({ parentSpanId: end.spanId });
    expect(trace).toHaveLength(6 + STAGES.length);
    // The request that brought it is in its caller's trace, or its own, and is named.
    const asked = one(spans.spans, "POST /v1/activations");
    expect(enqueue.links).toEqual([asked.traceId]);
  });

  it("is handed on to the model and to the tool server as the attempt's own context", () => {
    const attempt = one(
      spans.spans.filter(({ traceId }) => traceId === TRACE),
      "attempt",
    );
    const header = `00-${TRACE}-${attempt.spanId}-01`;
    expect(new Set(model.log.requests().map(({ headers }) => headers["traceparent"]))).toEqual(new Set([header]));
    expect(new Set(toolHeaders.map((headers) => headers["traceparent"]))).toEqual(new Set([header]));
  });

  it("of one that fails begins with the command that queued it, and says by a word that it failed", () => {
    const enqueue = one(
      spans.spans.filter(({ service }) => service === "rollcall-cli"),
      "enqueue activation",
    );
    expect(enqueue.parentSpanId).toBe("");
    const trace = spans.spans.filter(({ traceId }) => traceId === enqueue.traceId);
    const attempt = one(trace, "attempt");
    expect(attempt).toMatchObject({ failed: "mcp_server_unreachable", attributes: { "rollcall.cause_code": "mcp_server_unreachable" } });
    expect(one(trace, "record end").failed).toBe("mcp_server_unreachable");
    expect(one(trace, "process activations").parentSpanId).toBe(enqueue.spanId);
  });

  it("holds no secret, no text of others, and nothing of a job's data", async () => {
    const searched = [token, MODEL_KEY, SECRET_KEY, scraper, producer, "redis-password-of-the-test"];
    const texts = ["producers-own-words", "Never begins.", "office-of-the-trace", "session-of-the-trace"];
    expect([...searched, ...texts].filter((text) => spans.raw().includes(text))).toEqual([]);
    expect(spans.spans.flatMap(({ events }) => events)).toEqual([]);
    // The same search finds what is there.
    expect(spans.raw()).toContain("act-run-failing-down");
    await fetch(spans.url, { method: "POST", headers: { "x-planted": token }, body: `{"planted":"${MODEL_KEY}"}` });
    expect(searched.slice(0, 2).filter((text) => !spans.raw().includes(text))).toEqual([]);
  });
});

describe("the metrics", () => {
  it("of server and worker ask for a key, and pass Prometheus' own linter", () => {
    expect(metrics.denied).toEqual([401, 401, 401, 401]);
    for (const text of [metrics.server, metrics.worker]) expect(promtool(["check", "metrics"], text)).toBe("");
  });

  it("of the worker count what its two sessions came to", () => {
    const of = (name: string): Record<string, number> => samplesOf(metrics.worker, `rollcall_${name}`);
    expect(of("attempts_started_total")).toEqual({ "": 2 });
    expect(of("attempts_ended_total")).toEqual({
      'outcome="ended",status="completed",cause_class="none",failure_kind="none",cause_code="none"': 1,
      'outcome="ended",status="failed",cause_class="grant",failure_kind="agent_run_error",cause_code="mcp_server_unreachable"': 1,
    });
    expect(of("attempts_charged_total")).toEqual({ "": 2 });
    expect(of("attempt_phase_duration_seconds_count")).toEqual({
      'phase="queued"': 2,
      'phase="setup"': 2,
      'phase="run"': 2,
      'phase="collect"': 2,
    });
    expect(of("stage_duration_seconds_count")).toEqual(Object.fromEntries(STAGES.map((stage) => [`stage="${stage}"`, 2])));
    expect(of("tool_calls_total")).toEqual({ 'kind="mcp",status="completed"': 1 });
    expect(of("model_calls_total")['outcome="answered"']).toBeGreaterThanOrEqual(0);
    expect(of("tokens_total")).toMatchObject({ 'kind="input"': 2_000, 'kind="output"': 120 });
    expect(of("redaction_replacements_total")[""]).toBeGreaterThan(0);
    expect(of("canary_hits_total")).toEqual({ "": 0 });
    expect(of("worker_running")).toEqual({ "": 0 });
    expect(Object.keys(of("host_free_bytes"))).toEqual(['resource="disk"', 'resource="memory"']);
    expect(samplesOf(metrics.worker, "nodejs_eventloop_lag_p99_seconds")).toHaveProperty([""]);
  });

  it("of the server tell the whole queue", () => {
    const of = (name: string): Record<string, number> => samplesOf(metrics.server, `rollcall_${name}`);
    expect(of("redis_up")).toEqual({ "": 1 });
    expect(of("fleet_activations")).toMatchObject({ 'state="waiting"': 0, 'state="running"': 0 });
    expect(of("fleet_workers")).toEqual({ 'state="taking"': 1, 'state="held_back"': 0 });
    expect(of("fleet_worker_slots")).toEqual({ 'state="total"': 4, 'state="free"': 4 });
    expect(of("fleet_activations_ended_total")).toEqual({
      'status="completed",cause_class="none",failure_kind="none",cause_code="none"': 1,
      'status="failed",cause_class="grant",failure_kind="agent_run_error",cause_code="mcp_server_unreachable"': 1,
    });
    expect(of("http_request_duration_seconds_count")).toMatchObject({
      'method="POST",route="/v1/activations",status="2xx"': 1,
      'method="GET",route="/metrics",status="4xx"': 2,
    });
  });

  it("name no id, no path, no server of anybody, and no secret", () => {
    const texts = [
      token,
      MODEL_KEY,
      scraper,
      "act-",
      "run-traced",
      "run-failing",
      "office-of-the-trace",
      "results-of-run-traced",
      root,
      "127.0.0.1",
    ];
    expect(texts.filter((text) => (metrics.server + metrics.worker).includes(text))).toEqual([]);
  });
});
