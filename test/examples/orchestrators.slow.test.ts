// SPDX-License-Identifier: Apache-2.0
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, shell, step, type Step } from "../../examples/stand-ins/script.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { callApi } from "../api/rig.ts";
import { filesHolding } from "../support/byte-search.ts";
import { startTestRedis, type TestRedis } from "../support/redis.ts";
import { startRollcall, type CommandEnd, type RunningCommand } from "../support/rollcall-command.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { NONE, startFaultyProxy } from "./faulty-proxy.ts";

const pathOf = (file: string): string => fileURLToPath(new URL(`../../${file}`, import.meta.url));
const API_KEY = "api-key-of-the-examples-4711";

const LEASE_SECONDS = 2;

const root = suiteDir();
let redis: TestRedis;
let model: ModelServer;
let serve: RunningCommand;
let origin: string;
let env: Record<string, string>;

beforeAll(async () => {
  redis = await startTestRedis({ tcp: { password: "of-the-examples" } });
  model = await startModelServer();
  writeFileSync(join(root, "api-key"), `${API_KEY}\n`);
  env = {
    REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
    ROLLCALL_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    ROLLCALL_ARTIFACTS: join(root, "artifacts"),
    ROLLCALL_API_KEY_FILE: join(root, "api-key"),
  };
  const own = {
    OPENAI_API_KEY: "of-the-worker",
    ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
    XDG_STATE_HOME: join(root, "state"),
    TMPDIR: root,
  };
  serve = startRollcall(["serve", "--port", "0", "--workers", "1"], { env: { ...env, ...own } });
  const listens = vi.waitFor(() => expect(serve.stdout(), serve.stderr()).toContain("listening on"), { timeout: 90_000 });
  await Promise.race([listens, serve.ended.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
  origin = /listening on (\S+)/.exec(serve.stdout())![1]!;
}, 120_000);
afterAll(async () => {
  serve?.child.kill("SIGTERM");
  await serve?.ended;
  await model?.close();
  await redis?.stop();
}, 60_000);

/** A file of tasks as the examples read it: an id each, and what the stand-in model does. */
function tasks(name: string, steps: Record<string, Step[]>): string {
  const file = join(root, `${name}.jsonl`);
  const rows = Object.entries(steps).map(([id, each]) => ({
    task_id: { taskset: name, task_id: id },
    input: `Work.\n${scriptLine({ steps: each })}`,
  }));
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

/** Any program, to its end. */
function start(command: string, args: readonly string[], env: Record<string, string>): { child: ChildProcess; ended: Promise<CommandEnd> } {
  const child = spawn(command, args, { cwd: root, env });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return { child, ended: once(child, "close").then(([code]) => ({ code: code as number | null, stdout, stderr })) };
}

async function unread(queue: string): Promise<unknown> {
  const { body } = await callApi(origin, "/v1/results/queues", { key: API_KEY });
  return (body.queues as { queue: string }[]).find((each) => each.queue === queue);
}

const modelArgs = (): string[] => ["--model-base-url", model.captureBaseUrl];

describe("examples/orchestrator.py", () => {
  // Debian's before any other.
  const python = { PATH: `/usr/bin:/bin:${process.env["PATH"] ?? ""}`, HOME: "/nonexistent" };

  it("is run by a python3 that is here, with its whole standard library", () => {
    const { status, error, stderr } = spawnSync("python3", ["-c", "import hashlib, json, sqlite3, urllib.request"], { env: python });
    expect([status, error, stderr?.toString()], "install python3 (Debian, Ubuntu: apt-get install python3)").toEqual([0, undefined, ""]);
  });

  function startPython(args: readonly string[], url: string): ReturnType<typeof start> {
    const own = { ROLLCALL_API_URL: url, ROLLCALL_API_KEY_FILE: join(root, "api-key") };
    return start("python3", [pathOf("examples/orchestrator.py"), ...args], { ...python, ...own });
  }

  it("killed after a claim, before an ack and after one, and through lost requests and answers: each result counts once, none is lost", async () => {
    const invoices = join(root, "invoices.csv");
    writeFileSync(invoices, "number,amount\n1001,1250.00\n");
    const file = tasks("py", {
      copy: [step(shell("cat invoices.csv invoices.csv > copy.txt; seq 1 60000 > large.txt")), step(say("done"))],
      long: [step(say("x".repeat(20_000)))],
      spare: [{ ...step(say("too late")), delay_ms: 600_000 }],
    });
    // Each strikes once, in this order of first chances.
    const struck = new Set<string>();
    const first = (name: string): boolean => !struck.has(name) && struck.add(name).has(name);
    const ranges: (string | undefined)[] = [];
    let running: ChildProcess | null = null;
    const proxy = await startFaultyProxy(origin, {
      before({ method, path, headers }) {
        if (path.endsWith("/large.txt")) ranges.push(headers.range);
        if (method === "PUT" && first("lost PUT")) return { kind: "lost_request" };
        if (path === "/v1/activations" && first("busy")) return { kind: "busy" };
        if (path === "/v1/results/ack" && first("killed before its ack")) {
          running!.kill("SIGKILL");
          return { kind: "lost_request" };
        }
        return NONE;
      },
      after({ path }, body) {
        if (path === "/v1/activations" && first("lost answer")) return { kind: "lost_answer" };
        if (path === "/v1/results/ack" && first("killed after its ack")) {
          running!.kill("SIGKILL");
          return { kind: "lost_answer" };
        }
        if (path === "/v1/results/claim" && body.includes('"receipt"') && first("killed after its claim")) {
          running!.kill("SIGKILL");
          return { kind: "lost_answer" };
        }
        if (path.endsWith("/large.txt") && first("cut file")) return { kind: "cut", after: 100_000, reset: false };
        if (path.endsWith("/large.txt") && first("reset file")) return { kind: "cut", after: 200_000, reset: true };
        return NONE;
      },
    });
    onTestFinished(() => proxy.close());
    const args = [
      "--run",
      "py",
      "--tasks",
      file,
      "--file",
      invoices,
      "--cancel",
      "spare",
      "--lease-seconds",
      String(LEASE_SECONDS),
      ...modelArgs(),
    ];
    const ends: CommandEnd[] = [];
    while (ends.length < 5 && ends.at(-1)?.code !== 0) {
      const { child, ended } = startPython(args, proxy.origin);
      running = child;
      onTestFinished(() => void child.kill("SIGKILL"));
      ends.push(await ended);
      // What it had handled comes again once the lease has run out.
      if (ends.length === 2) await delay(LEASE_SECONDS * 1_000 + 200);
    }
    const output = ends.map(({ stdout }) => stdout).join("");
    const story = ends.map(({ code, stdout, stderr }) => `${code}\n${stdout}${stderr}`).join("---\n");
    expect([...struck].sort(), story).toEqual([
      "busy",
      "cut file",
      "killed after its ack",
      "killed after its claim",
      "killed before its ack",
      "lost PUT",
      "lost answer",
      "reset file",
    ]);
    expect(ends.map(({ code }) => code)).toEqual([null, null, null, 0]);
    expect(ranges).toEqual(["bytes=0-348893", "bytes=100000-348893", "bytes=100000-348893"]);

    for (const id of ["py-copy", "py-long", "py-spare"]) expect(output.split(`handled ${id} `).length, story).toBeLessThanOrEqual(2);
    expect(output).toMatch(/known already py-\w+ \(delivery [2-9]\)/);
    expect(output).toContain('tally: {"cancelled": 1, "completed": 2}');
    expect(output).toMatch(/run: \{"total": 3, .*"ended": \{"completed": 2,.*"cancelled": 1\}/);
    expect(await unread("results-py")).toMatchObject({ unread: 0, claimed: 0 });
    const csv = readFileSync(invoices, "utf8");
    expect(readFileSync(join(root, "fetched/py-copy/outputs/copy.txt"), "utf8")).toBe(csv + csv);
    const large = Array.from({ length: 60_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(readFileSync(join(root, "fetched/py-copy/outputs/large.txt"), "utf8")).toBe(large);
    // The same run once more: nothing is run or counted again.
    const { code, stdout } = await startPython(args, origin).ended;
    expect([code, stdout]).toEqual([0, expect.stringContaining('tally: {"cancelled": 1, "completed": 2}')]);
  });

  it("says what is wrong with an activation by code and field", async () => {
    const file = join(root, "refused.jsonl");
    writeFileSync(file, `${JSON.stringify({ task_id: { taskset: "t", task_id: "1" }, input: "x", max_attempts: 0 })}\n`);
    const args = ["--run", "refused", "--tasks", file, "--file", file];
    const { code, stderr } = await startPython(args, origin).ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(/422 activation_refused: .*\n {2}(\[0\]\.)?max_attempts: /)]);
    expect(stderr).not.toContain("Traceback");
  });
});

describe("examples/producer.ts and examples/consumer.ts", () => {
  it("queue once what is sent twice, and leave one file for each result, whatever comes again or cannot be handled yet", async () => {
    const file = tasks("ts", { short: [step(say("done"))], long: [step(say("x".repeat(20_000)))] });
    const produce = (): Promise<CommandEnd> =>
      startRollcall(["--run", "ts", "--tasks", file, "--file", file, ...modelArgs()], { env, cwd: root, entry: "examples/producer.js" })
        .ended;
    expect(await produce()).toMatchObject({ code: 0, stdout: "act-ts-short added\nact-ts-long added\n" });
    expect((await produce()).stdout).toMatch(/^act-ts-short (joined|ended)\nact-ts-long (joined|ended)\n$/);

    const done = join(root, "done");
    const consumer = startRollcall(["--queue", "results-ts", "--done", done], { env, entry: "examples/consumer.js" });
    onTestFinished(() => void consumer.child.kill("SIGKILL"));
    const told = (text: string): Promise<void> =>
      vi.waitFor(() => expect(consumer.stdout() + consumer.stderr()).toContain(text), { timeout: 90_000 });
    for (const id of ["act-ts-short", "act-ts-long"]) await told(`handled ${id} completed`);

    const queues = openQueues(redis.target, { onError: () => undefined });
    onTestFinished(() => queues.close());
    const results = queues.results("results-ts");
    const job = (await results.getJob("act-ts-long"))!;
    expect(job.data.body).toBeDefined(); // a large one comes by reference
    await vi.waitFor(async () => expect(await job.getState()).toBe("completed"), { timeout: 30_000 });
    const before = readFileSync(join(done, "act-ts-long.json"), "utf8");
    expect(JSON.parse(before)).toMatchObject({ status: "completed", tokens: expect.any(Number) });
    await job.remove();
    await results.add("result", job.data, { jobId: "act-ts-long" });
    await told("known already act-ts-long completed");
    expect(readFileSync(join(done, "act-ts-long.json"), "utf8")).toBe(before);

    await results.add("result", { ...job.data, body: { ...job.data.body!, sha256: "0".repeat(64) } }, { jobId: "act-ts-other" });
    await told("act-ts-other comes again");
    await vi.waitFor(async () => expect(await results.getJobState("act-ts-other")).toBe("delayed"), { timeout: 30_000 });
    consumer.child.kill("SIGTERM");
    expect((await consumer.ended).code).toBe(0);
    expect(readdirSync(done).sort()).toEqual(["act-ts-long.json", "act-ts-short.json"]);
  });
});

describe("examples/foreign-producer.mjs", () => {
  it("has its secret sealed: the session uses it, Redis never holds it, and what is sent twice runs once", async () => {
    const secret = "sk-of-a-foreign-producer-0815";
    writeFileSync(join(root, "model-key"), `${secret}\n`);
    const produce = async (): Promise<string> => {
      const args = [pathOf("examples/foreign-producer.mjs"), "foreign-1", "Say hello.", model.captureBaseUrl];
      const own = { ROLLCALL_API_URL: origin, MODEL_KEY_FILE: join(root, "model-key") };
      const { code, stdout, stderr } = await start(process.execPath, args, { ...env, ...own }).ended;
      expect([code, stderr]).toEqual([0, ""]);
      return stdout;
    };
    expect(await produce()).toBe("queued foreign-1\n");
    await produce();
    const ended = await callApi(origin, "/v1/activations/foreign-1/result?wait=120", { key: API_KEY });
    expect(ended).toMatchObject({ status: 200, body: { status: "completed", attempts: [{ attempt: 0 }] } });
    await produce();
    await vi.waitFor(async () => expect(await unread("results-foreign")).toMatchObject({ unread: 1, claimed: 0 }), { timeout: 30_000 });
    expect(model.log.countOf("foreign-1")).toBe(1);
    expect(model.log.requests("foreign-1")[0]?.headers.authorization).toBe(`Bearer ${secret}`);
    expect(filesHolding(redis.dir, "foreign-1")).not.toEqual([]);
    expect(filesHolding(redis.dir, secret)).toEqual([]);
    expect((await callApi(origin, "/v1/activations/foreign-1", { key: API_KEY })).body).toMatchObject({ state: "ended" });
  });
});
