// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { rollcall, startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

const WAIT = { timeout: 90_000, interval: 100 };
const SECRET = "tok-through-a-server-77110";

it("run --server works like a local run: a producer that is killed goes on, results and deliverables come home, and the other commands see it all [C7 D12 fault D7]", async () => {
  const root = tempDir();
  const at = (name: string): string => join(root, name);
  mkdirSync(at("run"), { mode: 0o700 });
  const model = await startModelServer({ apiKey: "k" });
  onTestFinished(() => model.close());
  writeFileSync(at("rollcall.toml"), "[codex]\nmcp_startup_timeout_seconds = 1\n");
  const env = {
    ROLLCALL_CONFIG: at("rollcall.toml"),
    OPENAI_API_KEY: "k",
    ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
    XDG_STATE_HOME: at("state"),
    XDG_RUNTIME_DIR: at("run"),
    TMPDIR: root,
  };
  const serve = startRollcall(["serve", "--out", at("served"), "--port", "0", "--workers", "1", "--concurrency", "1"], { env });
  onTestFinished(async () => {
    serve.child.kill("SIGTERM");
    await serve.ended;
  });
  const server = await vi.waitFor(() => {
    const found = /listening on (\S+)/.exec(serve.stdout())?.[1];
    expect(found, serve.stderr()).toBeDefined();
    return found!;
  }, WAIT);

  await vi.waitFor(() => expect(serve.stderr()).toMatch(/"concurrency":1,.*"worker started"/), WAIT); // its flag reaches its workers

  const row = (id: string, more: Record<string, unknown> = {}): string => {
    const steps = [step(shell(`echo of-${id} > answer.txt; echo private > notes.txt`)), step(say(`done ${id}`))];
    return `${JSON.stringify({ id, input: `Work.\n${scriptLine({ steps })}`, outputs: { paths: ["answer.txt"] }, ...more })}\n`;
  };
  const headers = { Authorization: `Bearer ${SECRET}` };
  const grant = {
    type: "mcp",
    name: "office",
    required: true,
    connection: { transport: "streamable_http", url: "http://127.0.0.1:1/mcp", headers },
  };
  writeFileSync(at("tasks.jsonl"), row("t1") + row("t2") + row("t3", { tool_grants: [grant] }) + row("t4"));
  const through = ["--server", server];
  const run = [
    "run",
    at("tasks.jsonl"),
    "--out",
    at("out"),
    "--model",
    "stand-in",
    "--model-base-url",
    model.captureBaseUrl,
    "--probe",
    "0",
    ...through,
  ];

  const first = startRollcall(run, { env });
  onTestFinished(() => void first.child.kill("SIGKILL"));
  const recorded = (): string => (existsSync(at("out/results.jsonl")) ? readFileSync(at("out/results.jsonl"), "utf8") : "");
  await vi.waitFor(() => expect(recorded(), first.stderr()).toContain('"t1"'), WAIT);
  first.child.kill("SIGKILL");
  await first.ended;
  const second = await rollcall(run, { env });
  expect(second, second.stderr).toMatchObject({ code: 1 });
  const results = recorded()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as ActivationResult);
  const told = results.map(({ task_id, status, failure }) => `${task_id.task_id} ${status} ${failure?.cause_code ?? ""}`);
  expect(told.toSorted()).toEqual(["t1 completed ", "t2 completed ", "t3 failed mcp_server_unreachable", "t4 completed "]);
  for (const { activation_id, task_id, status } of results) {
    const home = at(`out/artifacts/${activation_id}`);
    expect(existsSync(join(home, "result.json"))).toBe(true);
    if (status === "completed") expect(readFileSync(join(home, "attempt-0/outputs/answer.txt"), "utf8")).toBe(`of-${task_id.task_id}\n`);
    expect(existsSync(join(home, "attempt-0/config.toml"))).toBe(false); // evidence comes with --collect all
  }
  expect(JSON.stringify(results) + second.stdout + second.stderr).not.toContain(SECRET);

  const runId = results[0]!.run_id;
  const asking = async (...words: string[]) => {
    const ended = await rollcall([...words, ...through], { env });
    return { code: ended.code, text: ended.stdout + (ended.code === 0 ? "" : ended.stderr) };
  };
  expect(await asking("status", runId)).toMatchObject({
    code: 0,
    text: expect.stringMatching(/4 ended \(3 completed, 1 failed\), 0 running[\s\S]*workers: 1/),
  });
  expect(await asking("status", "--out", at("out"))).toMatchObject({ code: 0, text: expect.stringContaining("4 ended") });
  expect(await asking("watch", results[0]!.activation_id)).toMatchObject({ code: 0, text: expect.stringMatching(/ended: completed/) });
  expect(await asking("watch", runId)).toMatchObject({ code: 0, text: expect.stringMatching(/4 of 4 ended/) });
  const lines = (await asking("results", runId, "--bare")).text.trim().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { result: unknown }).result)).toEqual([null, null, null, null]);
  expect(await asking("cancel", results[0]!.activation_id)).toMatchObject({ code: 0, text: expect.stringContaining("ended as completed") });
  expect(await asking("pause", runId)).toMatchObject({ code: 0, text: expect.stringContaining("is paused") });
  expect(await asking("resume", runId)).toMatchObject({ code: 0, text: expect.stringContaining("goes on") });
  expect(await asking("status", "no-such")).toMatchObject({ code: 2, text: expect.stringContaining("is no activation, task or run") });

  const queued = await asking(
    "enqueue",
    at("tasks.jsonl"),
    "--run-id",
    "later",
    "--limit",
    "2",
    "--model",
    "stand-in",
    "--model-base-url",
    model.captureBaseUrl,
  );
  expect(queued).toMatchObject({ code: 0, text: "run later: 2 queued\n" });
  const followed = await asking("results", "later", "--follow");
  expect(
    followed.text
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { status: string }).status),
  ).toEqual(["completed", "completed"]);
  expect((await asking("retry", "later")).text).toContain("0 of run later");
  // Another process at the directory of the server: it has no run of its own, and artifacts of many.
  expect(await rollcall(["runs", "--out", at("served")], { env })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${runId}: 4 of 4 ended`),
  });
  expect(await rollcall(["status", runId, "--out", at("served")], { env })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("4 ended"),
  });
  expect(await asking("explain", "t1", "--out", at("out"))).toMatchObject({ code: 0, text: expect.stringContaining(": completed") });
  const noKey = await rollcall(["status", runId, ...through], { env: { ...env, XDG_STATE_HOME: at("nowhere") } });
  expect(noKey).toMatchObject({ code: 2, stderr: expect.stringContaining("ROLLCALL_API_KEY") });
});
