// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, shell, step } from "../../examples/stand-ins/script.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { codexVersions } from "../support/attempt.ts";
import { startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";
import { processesNaming } from "../sandbox/conformance/setting.ts";

const KEY = "stand-in-key-of-a-killed-one";

it.each(await codexVersions())(
  "Codex $name whose sandbox was killed from outside while a command ran is run again, as a fault of the machine [E11]",
  async ({ name, codex }) => {
    const root = tempDir();
    mkdirSync(join(root, "run"), { mode: 0o700 });
    const seconds = `300.${process.pid}${Date.now() % 100_000}`;
    const model = await startModelServer({
      apiKey: KEY,
      scriptFor: ({ attempt }) => ({ steps: attempt === 0 ? [step(shell(`sleep ${seconds}`)), step(say("late"))] : [step(say("done"))] }),
    });
    onTestFinished(() => model.close());
    writeFileSync(join(root, "rollcall.toml"), `codex_version = "${name}"\n[retry]\nbase_seconds = 0.1\n`);
    writeFileSync(join(root, "tasks.jsonl"), `${JSON.stringify({ id: "t0", input: "Work.", max_attempts: 2 })}\n`);
    const run = startRollcall(
      ["run", join(root, "tasks.jsonl"), "--out", join(root, "out"), "--config", join(root, "rollcall.toml")].concat([
        "--model",
        "stand-in",
        "--model-base-url",
        model.captureBaseUrl,
      ]),
      {
        env: {
          OPENAI_API_KEY: KEY,
          CODEX_BIN: join(codex.hostDir, codex.entry),
          XDG_STATE_HOME: join(root, "state"),
          XDG_RUNTIME_DIR: join(root, "run"),
          TMPDIR: root,
        },
      },
    );
    const sleeping = await vi.waitFor(
      () => {
        const [found] = processesNaming(`sleep\0${seconds}`);
        expect(found, run.stderr()).toBeDefined();
        return found!;
      },
      { timeout: 60_000, interval: 50 },
    );
    process.kill(firstInNamespace(sleeping), "SIGKILL");
    const { code, stderr } = await run.ended;
    const result = JSON.parse(readFileSync(join(root, "out/results.jsonl"), "utf8")) as ActivationResult;
    const told = result.attempts.map(({ status, failure, cause_class, evidence }) => ({
      status,
      cause: failure?.cause_code ?? null,
      cause_class,
      from_outside: evidence?.killed_from_outside ?? false,
    }));
    expect(told, stderr).toEqual([
      { status: "failed", cause: "killed_by_signal", cause_class: "infrastructure", from_outside: true },
      { status: "completed", cause: null, cause_class: null, from_outside: false },
    ]);
    expect(code).toBe(0);
  },
);

/** The host's number of the process that is 1 where `pid` is. */
function firstInNamespace(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  if (/^NSpid:.*\t1$/m.test(status)) return pid;
  return firstInNamespace(Number(/^PPid:\s*(\d+)/m.exec(status)?.[1]));
}
