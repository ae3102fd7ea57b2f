// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { ActivationResult } from "../src/contract/result.ts";
import { compareWithExpected } from "./stand-ins/compare.ts";
import { startModelServer } from "./stand-ins/model-server.ts";
import { expectedOutcomes, officeTasks } from "./stand-ins/office-tasks.ts";
import { startBrokenServer, startOfficeTools } from "./stand-ins/office-tools.ts";

/**
 * The main job on one machine: 20 office tasks, each a real Codex session with its own MCP grant and token, run by the same
 * command that anybody would type. Exit 0 when every task ended as expected.
 */
const { values: flags } = parseArgs({
  options: {
    out: { type: "string", default: "quickstart-out" },
    concurrency: { type: "string", default: "4" },
    "real-model": { type: "boolean", default: false },
    model: { type: "string", default: "gpt-5.5" },
  },
});
const out = resolve(flags.out);
const realModel = flags["real-model"];
if (realModel && !process.env["OPENAI_API_KEY"]) {
  console.error("quickstart: --real-model needs OPENAI_API_KEY");
  process.exit(2);
}

const STAND_IN_KEY = "stand-in-model-key-4711";
const [model, office, down] = [
  await startModelServer({ apiKey: STAND_IN_KEY }),
  await startOfficeTools(),
  await startBrokenServer("refuses"),
];
// The task file holds each session's token, so it lies outside the output directory, which people publish.
const scratch = await mkdtemp(join(tmpdir(), "rollcall-quickstart-"));
let exitCode = 1;
try {
  const tasks = officeTasks({
    mcpUrl: office.url,
    mintToken: (session) => office.mintToken(session),
    brokenUrl: down.url,
    scripts: !realModel,
  });
  const taskFile = join(scratch, "tasks.jsonl");
  await writeFile(taskFile, tasks.map((task) => `${JSON.stringify(task)}\n`).join(""), { mode: 0o600 });
  await rm(out, { recursive: true, force: true });

  console.log(
    realModel
      ? `${tasks.length} tasks, real Codex, real MCP server, the real model ${flags.model}`
      : `${tasks.length} tasks, real Codex, real MCP server, real Redis and sandboxes; the MODEL IS A STAND-IN that plays a script`,
  );
  const which = realModel ? ["--model", flags.model] : ["--model", "stand-in", "--model-base-url", model.captureBaseUrl];
  const limits = ["--concurrency", flags.concurrency, "--timeout-seconds", "120"];
  const code = await rollcall(["run", taskFile, "--out", out, "--skip-invalid", ...limits, ...which]);
  const results = (await readFile(join(out, "results.jsonl"), "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ActivationResult);
  const differences = realModel ? [] : compareWithExpected(expectedOutcomes(), results, (key) => model.log.countOf(key));
  for (const difference of differences) console.log(`NOT AS EXPECTED  ${difference}`);
  console.log(
    realModel
      ? `\nresults: ${out}`
      : `\n${tasks.length - new Set(differences.map((text) => text.split(":")[0])).size} of ${tasks.length} tasks ended as expected; results: ${out}`,
  );
  // 1 is what a batch with a refused and a failed task answers, and this one has both.
  exitCode = differences.length === 0 && code === (realModel ? code : 1) ? 0 : 1;
} finally {
  await Promise.all([model.close(), office.close(), down.close()]);
  await rm(scratch, { recursive: true, force: true });
}
process.exitCode = exitCode;

async function rollcall(args: string[]): Promise<number | null> {
  const main = fileURLToPath(new URL("../src/cli/main.js", import.meta.url));
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ["ignore", "inherit", "inherit"],
    env: realModel ? process.env : { ...process.env, OPENAI_API_KEY: STAND_IN_KEY },
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, "exit")) as [number | null];
  return code;
}
