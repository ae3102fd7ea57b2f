// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { findCodex, PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { placeFakeCodex } from "./fake-codex-binary.ts";
import { rollcall, startRollcall, type CommandEnd, type RunningCommand } from "./rollcall-command.ts";
import { tempDir } from "./temp-dir.ts";

/** The whole command on its embedded Redis, with a small program in Codex's place. */
export interface FakeCommand {
  root: string;
  out: string;
  env: Record<string, string>;
  /** Makes the program: sh that is run after its prompt was read into $prompt. */
  codex(script: string): void;
  start(rows: readonly object[], ...flags: string[]): RunningCommand;
  run(rows: readonly object[], ...flags: string[]): Promise<CommandEnd>;
  /** results.jsonl; of a task that was run again the last. */
  results(): Map<string, ActivationResult>;
}

/** `turn TEXT` is a whole turn. */
const BEGINNING = `prompt=$(cat)
turn() {
  echo '{"type":"thread.started","thread_id":"t"}'
  echo '{"type":"turn.started"}'
  echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"'"$1"'"}}'
  echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
}
`;

export async function fakeCommand(script: string): Promise<FakeCommand> {
  const root = tempDir();
  const out = join(root, "out");
  mkdirSync(join(root, "run"), { mode: 0o700 });
  const model = await startModelServer({ apiKey: "k" });
  onTestFinished(() => model.close());
  const env = {
    OPENAI_API_KEY: "k",
    CODEX_BIN: join(root, "bin", "codex"),
    ROLLCALL_STATE_DIR: join(root, "state"),
    XDG_RUNTIME_DIR: join(root, "run"),
    TMPDIR: root,
    PATH: `${dirname((await findCodex({ version: PACKAGED_CODEX_VERSION })).bwrap!)}:${process.env["PATH"]}`, // Codex brings a bwrap
  };
  const command: FakeCommand = {
    root,
    out,
    env,
    codex(text) {
      placeFakeCodex(dirname(env.CODEX_BIN), BEGINNING + text);
    },
    start(rows, ...flags) {
      const tasks = join(root, "tasks.jsonl");
      writeFileSync(tasks, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
      const args = ["run", tasks, "--out", out, "--model", "m", "--model-base-url", model.captureBaseUrl, ...flags];
      const run = startRollcall(args, { env: command.env });
      onTestFinished(() => void run.child.kill("SIGKILL"));
      return run;
    },
    run: (rows, ...flags) => command.start(rows, ...flags).ended,
    results() {
      const lines = readFileSync(join(out, "results.jsonl"), "utf8").split("\n").filter(Boolean);
      return new Map(lines.map((line) => JSON.parse(line) as ActivationResult).map((result) => [result.task_id.task_id, result]));
    },
  };
  command.codex(script);
  return command;
}

/** Another command with the same environment. */
export function besides(command: FakeCommand, ...args: string[]): Promise<CommandEnd> {
  return rollcall(args, { env: command.env });
}
