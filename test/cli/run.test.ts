// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";
import { rollcall, startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

// The real command with real Redis, Codex and sandboxes; only the model is a stand-in.
const WAIT = { timeout: 60_000, interval: 100 };
const KEY = "stand-in-key";

let root: string;
let tasks: string;
let out: string;
let hang: boolean;
let model: ModelServer;

beforeEach(async () => {
  root = tempDir();
  tasks = join(root, "tasks.jsonl");
  out = join(root, "out");
  hang = false;
  model = await startModelServer({
    apiKey: KEY,
    scriptFor: () => (hang ? { steps: [{ reply: [], fault: { kind: "hang" } }] } : undefined),
  });
});
afterEach(() => model.close());

function command(...flags: string[]): { args: string[]; env: Record<string, string> } {
  const args = ["run", tasks, "--out", out, "--model", "stand-in", "--model-base-url", model.captureBaseUrl, ...flags];
  return { args, env: { OPENAI_API_KEY: KEY, XDG_STATE_HOME: join(root, "state") } };
}

function writeTasks(count: number): void {
  writeFileSync(
    tasks,
    Array.from({ length: count }, (_, index) => `${JSON.stringify({ id: `t/${index}`, input: "Say done." })}\n`).join(""),
  );
}

function lines<T>(name: string): T[] {
  return readFileSync(join(out, name), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}

function byTask(): Record<string, string> {
  return Object.fromEntries(lines<ActivationResult>("results.jsonl").map(({ task_id, status }) => [task_id.task_id, status]));
}

describe("rollcall run", () => {
  it("leaves one result per task; the same command again has nothing to do and says so", async () => {
    writeTasks(3);
    const { args, env } = command("--json");
    const first = await rollcall(args, { env });
    expect(first).toMatchObject({ code: 0 });
    expect(byTask()).toEqual({ "t/0": "completed", "t/1": "completed", "t/2": "completed" });
    const events = first.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { event: string });
    expect(events.filter(({ event }) => event === "ended")).toHaveLength(3);
    expect(events.at(-1)).toMatchObject({ event: "summary", by_status: { completed: 3 } });
    const calls = model.log.total;
    const second = await rollcall(args, { env });
    expect(second).toMatchObject({ code: 0, stderr: expect.stringContaining("3 done before; nothing is left to run") as string });
    expect(model.log.total).toBe(calls);
  });

  it("hands back at SIGTERM, uncharged, with exit code 75; the same command goes on", async () => {
    writeTasks(3);
    hang = true;
    const { args, env } = command();
    const run = startRollcall(args, { env });
    await vi.waitFor(() => expect(run.stderr()).toContain("3 running"), WAIT);
    run.child.kill("SIGTERM");
    const ended = await run.ended;
    expect(ended.code).toBe(75);
    expect(ended.stderr).toContain("interrupted: what ended is saved");
    expect(JSON.parse(readFileSync(join(out, "summary.json"), "utf8"))).toMatchObject({ interrupted: true, missing: 3 });
    hang = false;
    const again = await rollcall(args, { env });
    expect(again.code).toBe(0);
    expect(Object.values(byTask())).toEqual(["completed", "completed", "completed"]);
    const charged = lines<ActivationResult>("results.jsonl").flatMap(({ attempts }) =>
      attempts.filter((attempt: Attempt) => attempt.charged && attempt.failure !== null),
    );
    expect(charged).toEqual([]);
  });

  it("begins anew where the output directory was deleted: nothing of the run before is run", async () => {
    writeTasks(3);
    hang = true;
    const { args, env } = command();
    const run = startRollcall(args, { env });
    await vi.waitFor(() => expect(run.stderr()).toContain("3 running"), WAIT);
    run.child.kill("SIGTERM");
    expect((await run.ended).code).toBe(75);
    rmSync(out, { recursive: true });
    hang = false;
    const calls = model.log.total;
    writeFileSync(tasks, `${JSON.stringify({ id: "other", input: "Say done." })}\n`);
    expect((await rollcall(args, { env })).code).toBe(0);
    expect(byTask()).toEqual({ other: "completed" });
    expect(model.log.total - calls).toBe(1);
  });

  it("goes on after kill -9: one result per task, the killed attempts are in it, no sandbox is left", async () => {
    writeTasks(2);
    hang = true;
    writeFileSync(join(root, "quick.toml"), "[queue]\nlock_duration_ms = 2000\nlock_renew_ms = 500\nstalled_interval_ms = 1000\n");
    const { args, env } = command("--config", join(root, "quick.toml"));
    const run = startRollcall(args, { env });
    await vi.waitFor(() => expect(run.stderr()).toContain("2 running"), WAIT);
    const records = join(root, "state", "rollcall", "worker", "sandboxes");
    expect(readdirSync(records)).toHaveLength(2);
    run.child.kill("SIGKILL");
    await run.ended;
    hang = false;
    const again = await rollcall(args, { env });
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("lock was taken over") as string });
    expect(byTask()).toEqual({ "t/0": "completed", "t/1": "completed" });
    expect(lines<ActivationResult>("results.jsonl").map(({ capture_key }) => capture_key)).toEqual(
      expect.arrayContaining([expect.stringMatching(/-a1$/)]),
    );
    expect(readdirSync(records)).toEqual([]);
  });

  it("warns that the provider host isolates nothing", async () => {
    writeTasks(1);
    const { args, env } = command("--sandbox", "host");
    expect(await rollcall(args, { env })).toMatchObject({ code: 0, stderr: expect.stringContaining("no isolation") as string });
  });

  it("is gone at once at a second signal", async () => {
    writeTasks(1);
    hang = true;
    const { args, env } = command();
    const run = startRollcall(args, { env });
    await vi.waitFor(() => expect(run.stderr()).toContain("1 running"), WAIT);
    run.child.kill("SIGINT");
    await vi.waitFor(() => expect(run.stderr()).toContain("stopping: "), WAIT);
    run.child.kill("SIGINT");
    expect((await run.ended).code).toBe(75);
  });

  it("goes on when the terminal is gone, logging into the output directory", async () => {
    writeTasks(1);
    hang = true;
    const { args, env } = command();
    const run = startRollcall(args, { env });
    await vi.waitFor(() => expect(run.stderr()).toContain("1 running"), WAIT);
    run.child.kill("SIGHUP");
    run.child.stderr!.destroy();
    run.child.stdout!.destroy();
    hang = false;
    await model.close(); // the hanging call breaks, and Codex asks again
    model = await startModelServer({ apiKey: KEY, port: Number(new URL(model.url).port) });
    expect((await run.ended).code).toBe(0);
    expect(readFileSync(join(out, "rollcall.log"), "utf8")).toContain(`results: ${out}`);
  });

  it.each<[string, () => Record<string, string>, RegExp]>([
    ["without a Redis server", () => ({ PATH: pathWithout() }), /no redis-server or valkey-server on PATH\. Install one: /],
    ["without Codex", () => ({ CODEX_BIN: "/nowhere/codex" }), /The Codex executable \/nowhere\/codex does not exist/],
    ["without the model key", () => ({ OPENAI_API_KEY: "" }), /the model key's variable OPENAI_API_KEY is not set: export it/],
    ["with REDIS_URL and no key to seal with", () => ({ REDIS_URL: "redis://127.0.0.1:1" }), /REDIS_URL needs ROLLCALL_SECRET_KEY/],
  ])("refuses to start %s, with exit code 2 and no result", async (_what, facts, expected) => {
    writeTasks(1);
    const { args, env } = command("--workers", "1");
    const { code, stderr } = await rollcall(args, { env: { ...env, ...facts() } });
    expect(stderr).toMatch(expected);
    expect({ code, results: readFileSync(join(out, "results.jsonl"), "utf8") }).toEqual({ code: 2, results: "" });
  });

  it("refuses a key that the model server refuses, before any task runs, saying which and what to do [fault D3]", async () => {
    writeTasks(1);
    const { args, env } = command();
    const { code, stderr } = await rollcall(args, { env: { ...env, OPENAI_API_KEY: "wrong-key-4711" } });
    expect(stderr).toMatch(/the model server at http:\S+ refuses the key in OPENAI_API_KEY \(HTTP 401\): export the right key/);
    expect(stderr).not.toContain("4711");
    expect({ code, results: readFileSync(join(out, "results.jsonl"), "utf8") }).toEqual({ code: 2, results: "" });
  });

  it("refuses a model URL that nobody answers at, with exit code 2 and no result", async () => {
    writeTasks(1);
    const { args, env } = command("--model-base-url", "http://127.0.0.1:9/v1");
    const { code, stderr } = await rollcall(args, { env });
    expect(stderr).toContain("nobody answers at the model URL http://127.0.0.1:9/v1");
    expect({ code, results: readFileSync(join(out, "results.jsonl"), "utf8") }).toEqual({ code: 2, results: "" });
  });
});

/** A PATH with Node only. */
function pathWithout(): string {
  const bin = join(root, "bin");
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, "node"));
  return dirname(join(bin, "node"));
}
