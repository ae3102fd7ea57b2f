// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { findCodex, PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { placeFakeCodex } from "../support/fake-codex-binary.ts";
import { processesNaming } from "../support/live-processes.ts";
import { rollcall, startRollcall, type RunningCommand } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

const WAIT = { timeout: 60_000, interval: 200 };

/** In Codex's place: says something and then nothing; told "stubborn" it does not hear SIGTERM. */
const FAKE_CODEX = `read -r prompt
echo '{"type":"thread.started","thread_id":"thread-1"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"half of the work"}}'
case "$prompt" in *stubborn*) trap '' TERM; while :; do sleep 1; done;; esac
exec sleep 600
`;

let root: string;
let out: string;
let model: ModelServer;
let env: Record<string, string>;
beforeEach(async () => {
  root = tempDir();
  out = join(root, "out");
  mkdirSync(join(root, "run"), { mode: 0o700 });
  model = await startModelServer({ apiKey: "k" });
  env = {
    OPENAI_API_KEY: "k",
    CODEX_BIN: placeFakeCodex(join(root, "bin"), FAKE_CODEX),
    XDG_STATE_HOME: join(root, "state"),
    XDG_RUNTIME_DIR: join(root, "run"),
    TMPDIR: root,
    PATH: `${dirname((await findCodex({ version: PACKAGED_CODEX_VERSION })).bwrap!)}:${process.env["PATH"]}`, // Codex brings a bwrap
  };
});
afterEach(() => model.close());

function runArguments(inputs: readonly string[], ...flags: string[]): string[] {
  const tasks = join(root, "tasks.jsonl");
  writeFileSync(tasks, inputs.map((input, index) => `${JSON.stringify({ id: `t${index}`, input })}\n`).join(""));
  return ["run", tasks, "--out", out, "--model", "m", "--model-base-url", model.captureBaseUrl, "--concurrency", "2", ...flags];
}

function startRun(inputs: readonly string[]): RunningCommand {
  const run = startRollcall(runArguments(inputs), { env });
  onTestFinished(() => void run.child.kill("SIGKILL"));
  return run;
}

async function ask(...args: string[]): Promise<{ code: number | null; stderr: string; stdout: string; answer: Record<string, unknown> }> {
  const ended = await rollcall([...args, "--out", out, "--json"], { env });
  return { ...ended, answer: ended.stdout === "" ? {} : (JSON.parse(ended.stdout) as Record<string, unknown>) };
}

async function untilRunning(run: RunningCommand, count: number): Promise<void> {
  // Until each has said something: that is what a cancel must keep.
  await vi.waitUntil(() => run.child.exitCode !== null || eventFiles().length === count, WAIT);
  expect(run.child.exitCode, run.stderr()).toBeNull();
  expect((await ask("status")).answer).toMatchObject({ running: count });
}

/** Event files that hold what the fake said. */
function eventFiles(): string[] {
  if (!existsSync(join(out, "artifacts"))) return [];
  const files = readdirSync(join(out, "artifacts"), { recursive: true }).map(String);
  return files.filter((file) => file.includes("events") && readFileSync(join(out, "artifacts", file), "utf8").includes("half of the work"));
}

const runId = (): string => (JSON.parse(readFileSync(join(out, "manifest.json"), "utf8")) as { run_id: string }).run_id;
const idOf = (task: string): string => `act-${runId()}-${task}`;

function committed(task: string): ActivationResult {
  return JSON.parse(readFileSync(join(out, "artifacts", idOf(task), "result.json"), "utf8")) as ActivationResult;
}

describe("beside a run that is alive", () => {
  it("pauses it, cancels one and then all that is left; running ones are stopped or killed, keep what was seen, and leave nothing [D12]", async () => {
    const run = startRun(["obeys", "stubborn", "waits", "waits too"]);
    await untilRunning(run, 2);

    const paused = await rollcall(["pause", "--out", out, "--by", "anna", "--reason", "the server is down"], { env });
    expect(paused).toMatchObject({ code: 0, stdout: expect.stringContaining("2 are held back, 2 running go on") as string });
    await vi.waitFor(() => expect(run.stderr()).toContain("the run is paused by anna since"), WAIT);
    const first = await ask("cancel", idOf("t0"), "--by", "anna", "--reason", "wrong task");
    expect(first.answer).toEqual({
      action: "cancel",
      activation_id: idOf("t0"),
      run_id: runId(),
      state: "running",
      outcome: "asked",
      status: "cancelled",
      still_ending: 0,
    });
    expect(first.code).toBe(0);
    expect(committed("t0")).toMatchObject({
      status: "cancelled",
      failure: { failure_reason: "cancelled by anna: wrong task", status_code: 409 },
      response: { output: [{ content: [{ text: "half of the work" }] }] },
    });
    expect(committed("t0").observations.records).not.toEqual([]);
    const status = await rollcall(["status", "--out", out], { env });
    expect(status.stdout).toContain("1 ended (1 cancelled), 1 running");
    expect(status.stdout).toContain("paused by anna since");
    expect(status.stdout).toContain("(the server is down)");
    expect(status.stdout).toMatch(/workers: 1\n .*process \d+ on .*, 1 running, lease ends in/);

    const all = await ask("cancel", "--wait", "30");
    expect(all.answer).toMatchObject({ action: "cancel", run_id: runId(), still_ending: 0 });
    expect(all.answer["found"]).toContainEqual({ state: "running", count: 1, outcome: "asked" });
    expect(all.answer["found"]).toContainEqual({ state: "ended", count: 1, outcome: "nothing" });
    const ended = await run.ended;
    expect(ended.stdout).toContain("4 cancelled");
    expect(ended.code).toBe(3);
    expect(committed("t1")).toMatchObject({ status: "cancelled", response: { output: [{ content: [{ text: "half of the work" }] }] } });
    expect(committed("t2")).toMatchObject({ status: "cancelled", response: null, attempts: [] });
    expect(eventFiles()).toHaveLength(2);
    await vi.waitFor(() => expect(processesNaming(root)).toEqual([]), WAIT);
    expect(readdirSync(join(root, "state", "rollcall", "worker", "sandboxes"))).toEqual([]);
  }, 180_000);
});

describe("where no run is alive", () => {
  it("starts its Redis and cancels what was left in the queue, with a result each; what cannot be done is said", async () => {
    const run = startRun(["one", "two", "three", "four"]);
    await untilRunning(run, 2);
    run.child.kill("SIGKILL"); // two are running, two wait
    await run.ended;
    await vi.waitFor(() => expect(processesNaming(root)).toEqual([]), WAIT);

    const waiting = idOf("t3");
    expect((await ask("status", waiting)).answer).toMatchObject({ state: "waiting", run_id: runId(), status: null });
    expect(await ask("cancel", waiting)).toMatchObject({ code: 0, answer: { state: "waiting", outcome: "done", status: "cancelled" } });
    expect(committed("t3")).toMatchObject({ status: "cancelled", attempts: [] });
    const retried = await rollcall(["retry", waiting, "--out", out], { env });
    expect(retried.stdout).toContain(`not retried: it has no job in the queue`);
    expect(retried.stdout).toContain(`rollcall run ${join(root, "tasks.jsonl")} --out ${out} --retry failed`);
    expect(retried.code).toBe(1);
    const unknown = await ask("cancel", "act-nobody");
    expect(unknown).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"act-nobody" is no activation, task or run') as string,
    });
    const misplaced = await ask("pause", waiting);
    expect(misplaced).toMatchObject({ code: 2, stderr: expect.stringContaining(`rollcall pause ${runId()}`) as string });

    // Its last worker is gone, but the claims are not lost before their time: so many are still ending.
    const rest = await ask("cancel", "--wait", "1");
    expect(rest).toMatchObject({ code: 1, answer: { still_ending: 2 } });
    expect(committed("t2")).toMatchObject({ status: "cancelled" });
    await vi.waitFor(() => expect(processesNaming(root)).toEqual([]), WAIT);
  }, 180_000);

  it("says that a directory is no run's, and that REDIS_URL or --out is needed", async () => {
    mkdirSync(out);
    expect(await rollcall(["status", "--out", out], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is not the output directory of a run") as string,
    });
    expect(await rollcall(["cancel", "act-a"], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("set REDIS_URL") as string,
    });
  });
});
