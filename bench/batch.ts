// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { startModelServer } from "../examples/stand-ins/model-server.ts";
import { tasks } from "../examples/stand-ins/office-tasks.ts";
import { startOfficeTools } from "../examples/stand-ins/office-tools.ts";
import { planServers } from "../src/activation/plan.ts";
import { findCodex, PACKAGED_CODEX_VERSION } from "../src/codex/binary.ts";
import { codexConfig } from "../src/codex/config.ts";
import { renderConfig } from "../src/codex/render-config.ts";
import { withDerivedIds } from "../src/contract/derive.ts";
import { admit } from "../src/contract/refusals.ts";
import type { ActivationResult } from "../src/contract/result.ts";
import { profileFor } from "../src/codex/profile.ts";

/**
 * A batch by Rollcall beside its floor: `xargs -P` over bare `codex exec` with the same config.toml, prompts, model and tool
 * servers, each with a CODEX_HOME of its own. Alternating rounds; medians of the ratio. The stand-in model answers after
 * --reply-delay-ms (default 0: the worst case for us, since a real model's seconds are the same in both).
 */
const { values: flags } = parseArgs({
  options: {
    tasks: { type: "string", default: "220" },
    calls: { type: "string", default: "1,27" },
    concurrency: { type: "string", default: "4" },
    rounds: { type: "string", default: "3" },
    "reply-delay-ms": { type: "string", default: "0" },
  },
});
const [taskCount, concurrency, rounds] = [Number(flags.tasks), Number(flags.concurrency), Number(flags.rounds)];
const KEY = "bench-model-key";
const MAIN = fileURLToPath(new URL("../src/cli/main.js", import.meta.url));

const model = await startModelServer({ apiKey: KEY, replyDelayMs: Number(flags["reply-delay-ms"]) });
const office = await startOfficeTools();
const scratch = await mkdtemp(join(tmpdir(), "rollcall-bench-"));
try {
  const codex = await findCodex({ version: PACKAGED_CODEX_VERSION });
  const table = new Table({
    head: ["model calls", "round", "bare wall s", "rollcall wall s", "ratio", "bare CPU s", "rollcall CPU s", "ratio"],
  });
  for (const modelCalls of flags.calls.split(",").map(Number)) {
    const rows = tasks(taskCount, { modelCalls, servers: { mcpUrl: office.url, mintToken: (session) => office.mintToken(session) } });
    const ratios: { wall: number; cpu: number }[] = [];
    let stages = "";
    for (let round = 1; round <= rounds; round++) {
      const bare = await measure(() => runBare(rows, join(codex.hostDir, codex.entry), join(scratch, `bare-${modelCalls}-${round}`)));
      const ours = await measure(() => runRollcall(rows, join(scratch, `ours-${modelCalls}-${round}`)));
      ratios.push({ wall: ours.wall / bare.wall, cpu: ours.cpu / bare.cpu });
      const { wall, cpu } = ratios.at(-1)!;
      table.push(
        [modelCalls, round, bare.wall, ours.wall, wall, bare.cpu, ours.cpu, cpu].map((value) =>
          Number.isInteger(value) ? value : value.toFixed(2),
        ),
      );
      stages = await stageTimes(join(scratch, `ours-${modelCalls}-${round}`, "out", "results.jsonl"));
    }
    table.push([
      modelCalls,
      "median",
      "",
      "",
      median(ratios.map(({ wall }) => wall)).toFixed(2),
      "",
      "",
      median(ratios.map(({ cpu }) => cpu)).toFixed(2),
    ]);
    console.log(`${modelCalls} model call(s): ${stages}`);
  }
  console.log(
    `${taskCount} tasks, ${concurrency} at once, reply delay ${flags["reply-delay-ms"]} ms, Codex ${codex.version}, Node ${process.versions.node}`,
  );
  console.log(table.toString());
} finally {
  await Promise.all([model.close(), office.close()]);
  await rm(scratch, { recursive: true, force: true });
}

type Rows = ReturnType<typeof tasks>;

/** One directory per task, then one xargs over all of them. */
async function runBare(rows: Rows, codex: string, dir: string): Promise<() => Promise<void>> {
  const script = join(dir, "one.sh");
  await mkdir(dir, { recursive: true });
  await writeFile(
    script,
    `#!/bin/sh\ncd "$1" && exec env -i PATH="$PATH" HOME="$1" CODEX_HOME="$1/codex" TMPDIR="$1" OPENAI_API_KEY=${KEY} RUST_LOG=error \\\n  '${codex}' exec --json --strict-config --skip-git-repo-check --cd "$1/work" -- - <prompt >events.jsonl 2>stderr.log\n`,
  );
  await chmod(script, 0o755);
  for (const row of rows) {
    const at = join(dir, row.id);
    await mkdir(join(at, "codex"), { recursive: true });
    await mkdir(join(at, "work"));
    await writeFile(join(at, "prompt"), String(row["input"]));
    await writeFile(join(at, "codex", "config.toml"), configFor(row, join(at, "work")), { mode: 0o600 });
  }
  const names = rows.map((row) => join(dir, row.id)).join("\n");
  return () => command("xargs", ["-P", String(concurrency), "-n", "1", script], { input: names, expected: [0] });
}

/** The very config.toml that a worker would write. */
function configFor(row: Rows[number], workdir: string): string {
  const { id, required_tools: _required, ...rest } = row;
  const raw = { ...rest, task_id: { taskset: "bench", task_id: id }, model: { name: "stand-in", base_url: model.captureBaseUrl } };
  const admission = admit(withDerivedIds(raw, "bench"), { allow_providers: [], allow_key_env: [] });
  if (!admission.accepted) throw new Error(JSON.stringify(admission.refusals));
  const { activation } = admission;
  const profile = profileFor(PACKAGED_CODEX_VERSION);
  const { servers } = planServers(activation.tool_grants, { startupSeconds: undefined, toolSeconds: undefined }, profile);
  return renderConfig(codexConfig({ profile, activation, captureKey: id, workdir, servers }));
}

async function runRollcall(rows: Rows, dir: string): Promise<() => Promise<void>> {
  await mkdir(dir, { recursive: true });
  const file = join(dir, "tasks.jsonl");
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const args = ["run", file, "--out", join(dir, "out"), "--concurrency", String(concurrency), "--probe", "0"];
  return () =>
    command(process.execPath, [MAIN, ...args, "--model", "stand-in", "--model-base-url", model.captureBaseUrl], { expected: [0] });
}

/** Seconds of wall clock, and of CPU used by the whole machine (servers included, in both), of what `prepare` made ready. */
async function measure(prepare: () => Promise<() => Promise<void>>): Promise<{ wall: number; cpu: number }> {
  const run = await prepare();
  const [cpu, wall] = [busyCpuSeconds(), performance.now()];
  await run();
  return { wall: (performance.now() - wall) / 1000, cpu: busyCpuSeconds() - cpu };
}

/** user + nice + system of /proc/stat, in clock ticks of 1/100 s: a sandbox's processes are nobody's waited-for children. */
function busyCpuSeconds(): number {
  const [user = 0, nice = 0, system = 0] = (/^cpu +(.*)$/m.exec(readFileSync("/proc/stat", "latin1"))?.[1] ?? "").split(" ").map(Number);
  return (user + nice + system) / 100;
}

async function command(
  program: string,
  args: readonly string[],
  { input = "", expected }: { input?: string; expected: number[] },
): Promise<void> {
  const env = { ...process.env, OPENAI_API_KEY: KEY, XDG_STATE_HOME: join(scratch, "state") };
  const child = spawn(program, args, { stdio: ["pipe", "ignore", "inherit"], env });
  child.stdin.end(input);
  const [code] = (await once(child, "exit")) as [number | null];
  if (code === null || !expected.includes(code)) throw new Error(`${program} ended with ${code}`);
}

/** Where a task's time goes, medians in ms. */
async function stageTimes(file: string): Promise<string> {
  const results = (await readFile(file, "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ActivationResult);
  const of = (stage: "setup_ms" | "run_ms" | "collect_ms"): string => median(results.map(({ timing }) => timing?.[stage] ?? 0)).toFixed(0);
  return `${results.length} results; median of a task: set-up ${of("setup_ms")} ms, Codex ${of("run_ms")} ms, collecting ${of("collect_ms")} ms`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
