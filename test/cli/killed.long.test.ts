// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { say, shell, step } from "../../examples/stand-ins/script.ts";
import { findCodex, PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import { isAlive, processIdentity } from "../../src/host/process.ts";
import { findBubblewrap } from "../../src/sandbox/bubblewrap-binary.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap.ts";
import { listOwnerRecords, type OwnerRecord } from "../../src/sandbox/owner-record.ts";
import { allPids, markedProcesses } from "../../src/sandbox/processes.ts";
import { filesHolding } from "../support/byte-search.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

// A driver that is killed while sessions run: the real Codex in real sandboxes, under the command, under a shell.
const MAIN = fileURLToPath(new URL("../../dist/src/cli/main.js", import.meta.url));
const SESSIONS = 4;

it.each([
  ["the worker", "worker"],
  ["its parent, which harms nobody", "parent"],
  ["its process group", "group"],
  ["everything at once, Redis too, as when the power fails", "all"],
])("kill -9 of %s: no sandbox outlives it, gc finds exactly those, no secret stays, and all tasks end [E19]", async (_what, victim) => {
  const root = tempDir();
  const stateDir = join(root, "state", "worker");
  let hangs = true;
  const model = await startModelServer({
    apiKey: "k",
    scriptFor: () => ({ steps: hangs ? [step(shell("sleep 600")), step(say("Done."))] : [step(say("Done."))] }),
  });
  const office = await startOfficeTools();
  onTestFinished(() => Promise.all([model.close(), office.close()]).then(() => undefined));
  mkdirSync(join(root, "run"), { mode: 0o700 });
  writeFileSync(join(root, "rollcall.toml"), "[queue]\nlock_duration_ms = 4000\nlock_renew_ms = 1000\nstalled_interval_ms = 1000\n");
  const secrets: string[] = [];
  const rows = Array.from({ length: SESSIONS }, (_, n) => {
    const token = office.mintToken(`s${n}`, null);
    secrets.push(token);
    const connection = { transport: "streamable_http", url: office.url, headers: { "X-NeMo-Gym-Session-Token": token } };
    return { id: `t${n}`, input: "x", tool_grants: [{ type: "mcp", name: "office", required: true, connection }] };
  });
  writeFileSync(join(root, "tasks.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const bwrapPath = await findBubblewrap({
    path: process.env["PATH"] ?? "",
    vendored: (await findCodex({ version: PACKAGED_CODEX_VERSION })).bwrap!,
  });
  const env = {
    OPENAI_API_KEY: "k",
    ROLLCALL_STATE_DIR: join(root, "state"),
    XDG_RUNTIME_DIR: join(root, "run"),
    TMPDIR: root,
    HOME: "/nonexistent",
    PATH: `${dirname(bwrapPath!)}:${process.env["PATH"]}`,
  };
  const where = ["--out", join(root, "out"), "--model", "stand-in", "--model-base-url", model.captureBaseUrl, "--probe", "0"];
  const args = ["run", join(root, "tasks.jsonl"), ...where, "--concurrency", String(SESSIONS), "--config", join(root, "rollcall.toml")];
  onTestFinished(() => killAll(root));

  // Of another worker, which lives: this process.
  const mine = await createBubblewrapProvider({ stateDir, bwrapPath }).create({
    id: "living",
    owner: { activation_id: "living", attempt: 0, process: processIdentity()! },
    runtime: { key: "none", hostDir: "/usr", only: [] },
    limits: {},
    network: { mode: "shared" },
    listeners: [],
  });
  onTestFinished(() => mine.destroy().then(() => undefined));
  const living = mine.exec(["/bin/sleep", "600"], { env: {}, cwd: mine.inside.workdir });
  living.stdout.resume();
  living.stderr.resume();

  const parent = spawn("/bin/sh", ["-c", '"$@" & echo $!; wait', "sh", process.execPath, MAIN, ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    env,
  });
  let told = "";
  parent.stdout.on("data", (chunk: Buffer) => (told += chunk.toString()));
  await vi.waitFor(() => expect(model.log.total).toBeGreaterThanOrEqual(SESSIONS), { timeout: 90_000, interval: 100 });
  const worker = processIdentity(Number(told.trim()))!;
  const records = (await listOwnerRecords(stateDir)).filter(({ id }) => id !== "living");
  expect(records).toHaveLength(SESSIONS);
  expect(records.every((record) => holdsSecret(record, secrets) && runs(record))).toBe(true);

  if (victim === "worker") process.kill(worker.pid, "SIGKILL");
  if (victim === "parent") parent.kill("SIGKILL");
  if (victim === "group") process.kill(-parent.pid!, "SIGKILL");
  if (victim === "all") killAll(root);

  const gc = async (): Promise<string[]> => {
    const { stdout } = await rollcall(["gc", "--json"], { env });
    const { found } = JSON.parse(stdout) as { found: { kind: string; what: string; done: string }[] };
    return found.flatMap(({ kind, what, done }) => (kind === "sandbox" ? [`${done} ${what}`] : [])).sort();
  };
  if (victim === "parent") {
    expect(await gc()).toEqual([]);
    expect(isAlive(worker) && records.every(runs)).toBe(true);
    process.kill(worker.pid, "SIGKILL"); // the rest is as with the worker
  }
  await vi.waitFor(() => expect(records.filter(runs)).toEqual([]), { timeout: 60_000, interval: 100 });
  expect(await gc()).toEqual(records.map(({ directory }) => `removed ${directory}`).sort());
  expect(records.filter(({ directory }) => existsSync(directory))).toEqual([]);
  for (const secret of secrets) expect(filesHolding(join(root, "state"), secret)).toEqual([]);
  expect(existsSync(mine.outside.workdir)).toBe(true);

  hangs = false;
  const ended = await rollcall(args, { env });
  expect(ended).toMatchObject({ code: 0 });
  const results = readFileSync(join(root, "out", "results.jsonl"), "utf8")
    .trim()
    .split("\n");
  expect(results.map((line) => (JSON.parse(line) as { status: string }).status)).toEqual(rows.map(() => "completed"));
  living.stop({ graceMs: 5_000 });
  expect(await living.exited).toEqual({ started: true, code: null, signal: "SIGTERM" }); // nobody had touched it
  expect(await mine.destroy()).toEqual({ cleanup_error: null });
  expect(readdirSync(join(stateDir, "sandboxes")).filter((name) => !name.startsWith("."))).toEqual([]);
});

function runs({ mark, directory }: OwnerRecord): boolean {
  return markedProcesses(mark).length > 0 || pidsNaming(directory).length > 0;
}

function holdsSecret({ directory }: OwnerRecord, secrets: readonly string[]): boolean {
  return secrets.some((secret) => filesHolding(directory, secret).length > 0);
}

/** SIGKILL, at one stroke, to all that was started with this directory in its arguments or environment: the command, Redis and its keeper. */
function killAll(root: string): void {
  for (const pid of pidsNaming(root)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // ended meanwhile
    }
  }
}

function pidsNaming(text: string): number[] {
  return allPids().filter((pid) => {
    if (pid === process.pid) return false;
    try {
      return `${readFileSync(`/proc/${pid}/cmdline`, "latin1")}${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(text);
    } catch {
      return false;
    }
  });
}
