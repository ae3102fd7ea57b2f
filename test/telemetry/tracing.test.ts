// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";
import { context, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { DelayedError, Queue, Worker, type Telemetry } from "bullmq";
import { BullMQOtel } from "bullmq-otel";
import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { stageFailure } from "../../src/activation/stage-failure.ts";
import { noAttemptTelemetry } from "../../src/activation/telemetry.ts";
import { RollcallError } from "../../src/errors.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { otelTracing } from "../../src/telemetry/otel.ts";
import { queueSpans } from "../../src/telemetry/queue-spans.ts";
import { startTracing, tracesWanted } from "../../src/telemetry/start-tracing.ts";
import { noTracing } from "../../src/telemetry/tracing.ts";
import { activationOf, startRig, TEST_KEYS } from "../queue/rig.ts";
import { startTestRedis } from "../support/redis.ts";

const SECRET = "tok-in-a-job-and-in-its-error";
const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const sent = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(sent)] });
provider.register();
afterAll(() => provider.shutdown());
beforeEach(() => sent.reset());
const tracing = otelTracing({ version: "0.0.0", close: () => Promise.resolve() });
const said = (): string =>
  JSON.stringify(
    sent.getFinishedSpans().map(({ name, attributes, events, status, links }) => ({ name, attributes, events, status, links })),
  );

describe("OpenTelemetry's variables", () => {
  it.each([
    [{}, null],
    [{ OTEL_SERVICE_NAME: "x" }, null],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, null],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" }, "http/protobuf"],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c:4318/v1/traces" }, "http/protobuf"],
    [{ OTEL_TRACES_EXPORTER: "otlp" }, "http/protobuf"],
    [{ OTEL_TRACES_EXPORTER: "none", OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" }, null],
    [{ OTEL_SDK_DISABLED: "true", OTEL_TRACES_EXPORTER: "otlp" }, null],
    [{ OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }, "http/json"],
    [{ OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json" }, "http/json"],
  ])("%j ask for %s", (env, wanted) => expect(tracesWanted(env)).toBe(wanted));

  it.each([{ OTEL_TRACES_EXPORTER: "zipkin" }, { OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }])(
    "%j are refused at the start, with what would do",
    (env) => expect(() => tracesWanted(env)).toThrow(/set it to/),
  );

  it("that are not set load nothing of it, and leave everything as it was", async () => {
    expect(await startTracing({}, { service: "s", version: "0", onProblem: () => undefined })).toBe(noTracing);
    expect(await noTracing.within("x", {}, async ({ traceparent }) => traceparent)).toBeUndefined();
    expect(noAttemptTelemetry.traceparent()).toBeUndefined();
    // In a process of its own: this one has loaded it.
    const look = `
      import { createRequire } from "node:module";
      await import(process.argv[1]);
      console.log(Object.keys(createRequire(import.meta.url).cache).filter((file) => /opentelemetry|bullmq-otel|prom-client/.test(file)).length);
    `;
    const loadedBy = (module: string): number => {
      const file = new URL(`../../dist/src/${module}`, import.meta.url).href;
      return Number(spawnSync(process.execPath, ["--input-type=module", "-e", look, file], { encoding: "utf8" }).stdout);
    };
    expect(loadedBy("cli/run-worker.js")).toBe(0);
    expect(loadedBy("telemetry/otel-sdk.js")).toBeGreaterThan(10);
  }, 180_000);
});

describe("a span", () => {
  it("of something that failed says a word of ours, never the error's text", async () => {
    for (const error of [new Error(SECRET), new RollcallError("store_mismatch", SECRET), stageFailure("sandbox_failed", SECRET)])
      await expect(tracing.within("stage", {}, () => Promise.reject(error))).rejects.toBe(error);
    expect(sent.getFinishedSpans().map(({ status }) => status.message)).toEqual(["error", "store_mismatch", "sandbox_failed"]);
    expect(said()).not.toContain(SECRET);
  });

  it("begins in the trace that its producer names, and is linked to what brought it", async () => {
    await tracing.within("request", {}, async () => tracing.begin("enqueue", { parent: TRACEPARENT }).end());
    const [enqueue, request] = sent.getFinishedSpans();
    expect(enqueue).toMatchObject({ parentSpanContext: { traceId: TRACEPARENT.slice(3, 35), spanId: TRACEPARENT.slice(36, 52) } });
    expect(enqueue!.links.map((link) => link.context.spanId)).toEqual([request!.spanContext().spanId]);
    expect(trace.getSpan(context.active())).toBeUndefined();
  });
});

describe("BullMQ's claims", () => {
  async function runJobs(telemetry: Telemetry): Promise<void> {
    const redis = await startTestRedis();
    const queue = new Queue("q", { connection: redisOptions(redis.target, "command") });
    const ends: string[] = [];
    const worker = new Worker(
      "q",
      async (job, token) => {
        if (job.name === "fails") throw new Error(SECRET);
        if (job.name === "waits" && job.attemptsStarted === 1) {
          await job.moveToDelayed(Date.now() + 1, token);
          throw new DelayedError();
        }
        return { secret: SECRET };
      },
      { connection: redisOptions(redis.target, "blocking"), telemetry, name: "w" },
    );
    worker.on("error", () => undefined);
    for (const event of ["completed", "failed"] as const)
      worker.on(event, (job: { name: string } | undefined) => void ends.push(job!.name));
    for (const name of ["fails", "works", "waits"])
      await queue.add(
        name,
        { secret: SECRET },
        { jobId: `job-${name}`, telemetry: { metadata: JSON.stringify({ traceparent: TRACEPARENT }) } },
      );
    await vi.waitFor(() => expect(ends.sort()).toEqual(["fails", "waits", "works"]), { timeout: 60_000 });
    await worker.close();
    await queue.close();
    await redis.stop();
  }

  it("are spans below what enqueued the job, and tell nothing of its data, its result or its error", async () => {
    await runJobs(queueSpans("0.0.0"));
    const spans = sent.getFinishedSpans();
    expect(new Set(spans.map(({ name }) => name))).toEqual(new Set(["process q"]));
    expect(spans.map(({ attributes }) => String(attributes["bullmq.job.id"])).sort()).toEqual([
      "job-fails",
      "job-waits",
      "job-waits",
      "job-works",
    ]);
    for (const span of spans) {
      expect(span.parentSpanContext?.spanId).toBe(TRACEPARENT.slice(36, 52));
      expect(Object.keys(span.attributes).sort()).toEqual(["bullmq.job.id", "bullmq.job.name", "bullmq.queue.name", "bullmq.worker.name"]);
    }
    expect(said()).not.toContain(SECRET);
    sent.reset();
    await runJobs(new BullMQOtel({ tracerName: "t" })); // what it would tell by itself
    expect(said()).toContain(SECRET);
    expect(sent.getFinishedSpans().length).toBeGreaterThan(8);
  });
});

it("an activation is the same with and without tracing, and its jobs know their trace where a producer names one", async () => {
  const rig = await startRig();
  onTestFinished(() => rig.close());
  const plain = activationOf("act-plain");
  const named = activationOf("act-named", { traceparent: TRACEPARENT });
  await enqueueActivations(rig.queues, [plain, named], { keys: TEST_KEYS });
  const traced = { ...rig.queues, tracing };
  const again = await enqueueActivations(traced, [plain, named, activationOf("act-traced")], { keys: TEST_KEYS });
  expect(again.map(({ outcome }) => outcome)).toEqual(["joined", "joined", "added"]);
  const [span] = sent.getFinishedSpans();
  expect(sent.getFinishedSpans()).toHaveLength(1);
  const contextOf = async (id: string): Promise<unknown[]> => {
    const jobs = [await rig.queues.activations.getJob(id), await rig.queues.final.getJob(`f-${id}`)];
    return jobs.map((job) => job!.opts.telemetry?.metadata);
  };
  expect(await contextOf("act-plain")).toEqual([undefined, undefined]);
  const metadata = JSON.stringify({ traceparent: TRACEPARENT });
  expect(await contextOf("act-named")).toEqual([metadata, metadata]);
  const { traceId, spanId } = span!.spanContext();
  expect(await contextOf("act-traced")).toEqual(Array(2).fill(JSON.stringify({ traceparent: `00-${traceId}-${spanId}-01` })));
});
