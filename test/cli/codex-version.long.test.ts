// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { compareWithExpected } from "../../examples/stand-ins/compare.ts";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { expectedOutcomes, officeTasks } from "../../examples/stand-ins/office-tasks.ts";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { rollcall, type CommandEnd } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

// Batches by the command on another Codex than the packaged one, both real; only the model is a stand-in.
const KEY = "stand-in-key-of-another-version";
let root: string;
let model: ModelServer;
let office: OfficeTools;
beforeEach(async () => {
  root = tempDir();
  mkdirSync(join(root, "run"), { mode: 0o700 });
  writeFileSync(join(root, "rollcall.toml"), 'codex_version = "0.144.4"\n');
  [model, office] = [await startModelServer({ apiKey: KEY }), await startOfficeTools()];
});
afterEach(() => Promise.all([model.close(), office.close()]));

async function run(rows: readonly object[], ...flags: string[]): Promise<{ ended: CommandEnd; results: ActivationResult[] }> {
  const [tasks, out] = [join(root, "tasks.jsonl"), join(root, "out")];
  writeFileSync(tasks, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const server = ["--model", "stand-in", "--model-base-url", model.captureBaseUrl];
  const ended = await rollcall(["run", tasks, "--out", out, "--config", join(root, "rollcall.toml"), ...server, ...flags], {
    env: { OPENAI_API_KEY: KEY, XDG_STATE_HOME: join(root, "state"), XDG_RUNTIME_DIR: join(root, "run"), TMPDIR: root },
  });
  const lines = readFileSync(join(out, "results.jsonl"), "utf8").split("\n").filter(Boolean);
  return { ended, results: lines.map((line) => JSON.parse(line) as ActivationResult) };
}

it("a whole batch with codex_version 0.144.4 ends each task as expected, every session on that version [C2 C8 R48]", async () => {
  const down = await startBrokenServer("refuses");
  const rows = officeTasks({ mcpUrl: office.url, brokenUrl: down.url, mintToken: (session) => office.mintToken(session) });
  const { ended, results } = await run(rows, "--skip-invalid", "--concurrency", "4");
  expect(ended.code, ended.stderr).toBe(1);
  expect(compareWithExpected(expectedOutcomes(), results, (key) => model.log.countOf(key))).toEqual([]);
  const ran = results.filter(({ attempts }) => attempts.length > 0);
  expect(ran.map(({ worker }) => worker?.codex_version)).toEqual(ran.map(() => "0.144.4"));
  expect(ran).toHaveLength(19);
  const seen = new Set(model.log.requests().map(({ headers }) => /\/(\d+\.\d+\.\d+)/.exec(headers["user-agent"] ?? "")?.[1]));
  expect([...seen]).toEqual(["0.144.4"]);
}, 480_000);

it("one worker runs rows on the versions that they name, each for itself [R48]", async () => {
  const row = (id: string, codex: object): object => ({ task_id: { taskset: "t", task_id: id }, input: "Say done.", codex });
  const { ended, results } = await run([row("none", {}), row("newest", { version: "0.171.0" }), row("named", { version: "0.144.4" })]);
  expect(ended.code, ended.stderr).toBe(0);
  const versions = results.map(({ task_id, worker }) => [task_id.task_id, worker?.codex_version]);
  expect(Object.fromEntries(versions)).toEqual({ none: "0.144.4", newest: "0.171.0", named: "0.144.4" });
});
