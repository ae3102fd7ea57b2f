// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { collectCommand } from "./collect.ts";
import { cleanCommand } from "./clean.ts";
import { codexCommand } from "./codex.ts";
import { compareCommand } from "./compare.ts";
import { controlCommands } from "./control.ts";
import { doctorCommand } from "./doctor.ts";
import { enqueueCommand } from "./enqueue.ts";
import { explainCommand } from "./explain.ts";
import { exportCommand } from "./export.ts";
import { failureOf } from "./fail.ts";
import { gcCommand } from "./gc.ts";
import { outliveReaders } from "./outlive-readers.ts";
import { pullCommand } from "./pull.ts";
import { replayCommand } from "./replay.ts";
import { reportCommand } from "./report.ts";
import { resultsCommand } from "./results.ts";
import { runCommand } from "./run.ts";
import { runsCommand } from "./runs.ts";
import { schemaCommand } from "./schema.ts";
import { serveCommand } from "./serve.ts";
import { verifyCommand } from "./verify.ts";
import { rollcallVersion } from "./version.ts";
import { watchCommand } from "./watch.ts";
import { webhooksCommand } from "./webhooks.ts";
import { workerCommand } from "./worker.ts";

const program = new Command("rollcall")
  .description("Batches of OpenAI Codex sessions, each with its own tool grants, from a Redis queue; one result each.")
  .version(rollcallVersion())
  .showHelpAfterError("(--help says more)")
  .addHelpText(
    "after",
    `
Exit codes: 0 all completed or incomplete; 1 some failed, refused or cancelled; 2 bad usage or input, nothing run;
3 none completed; 4 everything refused before a start; 5 stopped by budget; 70 internal error; 75 interrupted, results saved.`,
  );

let exitCode = 0;
const setExitCode = (code: number): void => {
  exitCode = code;
};
// A command loads what it works with (queue, sandbox, Codex) when it runs: help and refusals come in a third of a second.
const commands = [
  runCommand(setExitCode),
  workerCommand(),
  serveCommand(),
  enqueueCommand(),
  resultsCommand(),
  watchCommand(),
  runsCommand(),
  pullCommand(),
  ...controlCommands(setExitCode),
  gcCommand(setExitCode),
  cleanCommand(setExitCode),
  explainCommand(),
  replayCommand(setExitCode),
  reportCommand(),
  compareCommand(),
  exportCommand(),
  collectCommand(),
  webhooksCommand(),
  verifyCommand(setExitCode),
  doctorCommand(setExitCode),
  codexCommand(),
  schemaCommand(),
];
for (const command of commands) program.addCommand(command);
for (const command of [program, ...program.commands]) command.exitOverride();

program.hook("preAction", (_program, action) => outliveReaders(action.name()));

try {
  await program.parseAsync();
} catch (error) {
  const failure = failureOf(error);
  if (failure.text !== null) process.stderr.write(`${failure.text}\n`);
  exitCode = failure.exitCode;
}
process.exitCode = exitCode;
// Everything is closed by now; should something still hold the process, it is not worth waiting for.
setTimeout(() => process.exit(), 5_000).unref();
