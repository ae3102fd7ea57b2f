// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { serveOnLoopback } from "../../examples/stand-ins/loopback.ts";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { codexVersions } from "../support/attempt.ts";
import { rollcall, type CommandEnd } from "../support/rollcall-command.ts";
import { suiteDir } from "../support/suite-dir.ts";

const dir = suiteDir();
const KEY = "stand-in-key-of-absent-models";
/** The command gives time to take the server away. */
const input = `Work.\n${scriptLine({ steps: [step(shell("sleep 4; echo worked")), step(say("done"))] })}`;

/** One `rollcall run` of these tasks, each at its own model server. */
async function run(
  name: string,
  { hostDir, entry, version }: { hostDir: string; entry: string; version: string },
  tasks: Record<string, string>,
  timeout_seconds: number,
): Promise<{ ended: CommandEnd; told: Record<string, string> }> {
  const root = join(dir, name);
  mkdirSync(join(root, "run"), { recursive: true, mode: 0o700 });
  const rows = Object.entries(tasks).map(([task_id, base_url]) => ({
    task_id: { taskset: "away", task_id },
    input,
    model: { name: "stand-in", base_url },
    codex: { timeout_seconds },
    max_attempts: 2,
  }));
  writeFileSync(join(root, "tasks.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  writeFileSync(join(root, "rollcall.toml"), `key_origins = { OPENAI_API_KEY = ["*"] }\ncodex_version = "${version}"\n`);
  const out = join(root, "out");
  const ended = await rollcall(["run", join(root, "tasks.jsonl"), "--out", out, "--config", join(root, "rollcall.toml")], {
    env: {
      OPENAI_API_KEY: KEY,
      CODEX_BIN: join(hostDir, entry),
      XDG_STATE_HOME: join(root, "state"),
      XDG_RUNTIME_DIR: join(root, "run"),
      TMPDIR: root,
    },
  });
  const results = readFileSync(join(out, "results.jsonl"), "utf8").split("\n").filter(Boolean);
  const told = results.map((line) => {
    const { task_id, status, attempts } = JSON.parse(line) as ActivationResult;
    const each = attempts.map((one) =>
      [one.status, one.failure?.failure_kind, one.failure?.cause_code, one.cause_class].filter(Boolean).join(" "),
    );
    return [task_id.task_id, [status, ...each].join("; ")];
  });
  return { ended, told: Object.fromEntries(told) as Record<string, string> };
}

/** Settles when the first call was answered, and the command runs. */
async function firstAnswered(model: ModelServer): Promise<void> {
  while (model.log.total === 0) await sleep(50);
  await sleep(1_500);
}

const LOST = "failed provider_unavailable stream_lost model_provider";

describe.each(await codexVersions())("a model server that goes away, under Codex $name", ({ name, codex }) => {
  const task = name.replaceAll(/\W/g, "_");

  it("for good, from the start and in mid-turn: failed, tried again, and the command says that nothing completed", async () => {
    // There when the command looks at it, and gone with the first call.
    const early = await serveOnLoopback((request, response) => {
      if (request.method === "POST") void early.close();
      else response.writeHead(404).end();
    });
    const dies = await startModelServer({ apiKey: KEY });
    // Codex gives up after some 25 s, or where it waits without end our wall clock ends it: the same either way.
    const running = run(`${task}-good`, codex, { "dies-at-the-start": `${early.origin}/v1`, "dies-in-mid-turn": dies.baseUrl }, 35);
    await Promise.race([firstAnswered(dies), running]);
    await dies.close();
    const { ended, told } = await running;
    expect(told, ended.stderr).toEqual({
      "dies-at-the-start": `failed; ${LOST}; ${LOST}`,
      "dies-in-mid-turn": `failed; ${LOST}; ${LOST}`,
    });
    expect(ended.code).toBe(3);
  });

  it("for ten seconds: the session goes on, and nothing failed", async () => {
    const model = await startModelServer({ apiKey: KEY });
    const running = run(`${task}-ten`, codex, { "ten-seconds": model.baseUrl }, 90);
    await Promise.race([firstAnswered(model), running]);
    await model.close();
    await sleep(10_000); // how long it is away is what is tested
    const again = await startModelServer({ apiKey: KEY, port: Number(new URL(model.url).port) });
    const { ended, told } = await running;
    await again.close();
    expect(told, ended.stderr).toEqual({ "ten-seconds": "completed; completed" });
    expect(ended.code).toBe(0);
    expect(again.log.total).toBeGreaterThan(0);
  });
});
