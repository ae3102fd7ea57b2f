// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { compareWithExpected } from "../../examples/stand-ins/compare.ts";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { expectedOutcomes, officeTasks, tasks as loadTasks } from "../../examples/stand-ins/office-tasks.ts";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import type { Metrics } from "../../src/report/metrics.ts";
import { atifSchema } from "../export/atif-schema.ts";
import { commandLinesHolding, filesHolding } from "../support/byte-search.ts";
import { startTestRedis } from "../support/redis.ts";
import { processesNaming } from "../support/live-processes.ts";
import { rollcall, startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

// A whole batch by the command, on real parts; only the model is a stand-in.
const KEY = "stand-in-key-of-a-whole-run";
let root: string;
let out: string;
let model: ModelServer;
let office: OfficeTools;

beforeEach(async () => {
  root = tempDir();
  out = join(root, "out");
  mkdirSync(join(root, "run"), { mode: 0o700 });
  [model, office] = [await startModelServer({ apiKey: KEY }), await startOfficeTools()];
});
afterEach(() => Promise.all([model.close(), office.close()]));

function command(rows: readonly object[], ...flags: string[]): [string[], { env: Record<string, string> }] {
  const file = join(root, "tasks.jsonl");
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return [
    ["run", file, "--out", out, "--model", "stand-in", "--model-base-url", model.captureBaseUrl, ...flags],
    { env: { OPENAI_API_KEY: KEY, XDG_STATE_HOME: join(root, "state"), XDG_RUNTIME_DIR: join(root, "run"), TMPDIR: root } },
  ];
}

function results(): ActivationResult[] {
  return readFileSync(join(out, "results.jsonl"), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as ActivationResult);
}

describe("a whole batch", () => {
  it("ends each task as expected, shows no token anywhere, and leaves nothing behind [C2 C8]", async () => {
    const minted: string[] = [];
    const down = await startBrokenServer("refuses");
    const rows = officeTasks({
      mcpUrl: office.url,
      brokenUrl: down.url,
      mintToken: (session) => {
        minted.push(office.mintToken(session));
        return minted.at(-1)!;
      },
    });
    const run = startRollcall(...command(rows, "--skip-invalid", "--concurrency", "4"));
    await vi.waitFor(() => expect(model.log.total).toBeGreaterThan(20), { timeout: 60_000 });
    const state = join(root, "state");
    const searched = [KEY, ...minted];
    expect(searched.flatMap(commandLinesHolding)).toEqual([]);
    expect(searched.flatMap((token) => filesHolding(join(root, "run"), token))).toEqual([]);
    // The same search finds what is no secret: in the queue's append-only file and among the processes.
    expect(filesHolding(state, "act-").some((file) => file.includes("appendonly"))).toBe(true);
    expect(commandLinesHolding(out)).not.toEqual([]);
    const ended = await run.ended;
    expect(ended.code).toBe(1);
    expect(compareWithExpected(expectedOutcomes(), results(), (key) => model.log.countOf(key))).toEqual([]);
    const told = JSON.parse((await rollcall(["report", out, "--json"])).stdout) as Metrics;
    const asked = results().reduce((total, { capture_key }) => total + model.log.countOf(capture_key), 0);
    // Every request that the model server saw is accounted for; one of the tasks has its stream cut once.
    expect(told.model_calls).toMatchObject({
      answered: { n: 19 },
      by_status: { "200": asked - 1, cut_off: 1 },
      errors_unknown_rollouts: 0,
    });
    expect(told.submissions).toMatchObject({ tools: ["finish"], by_end: { called: 18, failed: 1, refused: 1, missing: 0 } });
    expect((await rollcall(["report", out])).code).toBe(0);
    expect((await rollcall(["export", out, "--format", "atif"])).stderr).toContain("18 of 20 rollouts exported as ATIF-v1.7");
    const trajectories = readdirSync(join(out, "export", "atif")).filter((name) => name.startsWith("act-"));
    for (const name of trajectories) atifSchema.parse(JSON.parse(readFileSync(join(out, "export", "atif", name), "utf8")));
    for (const place of [out, state]) expect(searched.flatMap((token) => filesHolding(place, token))).toEqual([]);
    expect(searched.filter((token) => (ended.stdout + ended.stderr).includes(token))).toEqual([]);
    await vi.waitFor(() => expect(processesNaming(root)).toEqual([]), { timeout: 20_000 });
    expect(readdirSync(join(root, "run"), { recursive: true }).filter((name) => String(name).endsWith(".sock"))).toEqual([]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(root);
    expect(readdirSync(root).sort()).toEqual(["out", "run", "state", "tasks.jsonl"]);
    expect(readdirSync(join(state, "rollcall", "worker", "sandboxes"))).toEqual([]);
  }, 180_000);

  it("loses nothing when Redis is gone for 5 seconds in the middle", async () => {
    const redis = await startTestRedis({ tcp: { password: "redis-password" } });
    try {
      if (redis.target.kind !== "url") throw new Error("the test wants Redis on TCP");
      const rows = loadTasks(12, { modelCalls: 8, servers: { mcpUrl: office.url, mintToken: (session) => office.mintToken(session) } });
      const [args, { env }] = command(rows, "--workers", "4");
      const shared = {
        REDIS_URL: redis.target.url,
        ROLLCALL_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
        ROLLCALL_ARTIFACTS_DIR: join(root, "artifacts"),
      };
      const run = startRollcall(args, { env: { ...env, ...shared } });
      await vi.waitFor(() => expect(model.log.total).toBeGreaterThan(24), { timeout: 60_000 });
      await redis.kill9();
      const gone = Date.now();
      await vi.waitUntil(() => Date.now() - gone > 5_000, { timeout: 20_000 });
      await redis.restart();
      const ended = await run.ended;
      expect(ended).toMatchObject({ code: 0 });
      expect(results().map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => "completed"));
      expect(new Set(results().map(({ activation_id }) => activation_id)).size).toBe(12);
      // Each session handed in once: no second Codex ran for any of them.
      expect(office.calls.filter(({ tool }) => tool === "finish")).toHaveLength(12);
    } finally {
      await redis.stop();
    }
  }, 180_000);
});
