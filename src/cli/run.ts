// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { skillsIn } from "../codex/skills.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { BREAKER_MODES, type BreakerMode } from "../queue/breaker-mode.ts";
import { RETRY_POLICIES, type RetryPolicy } from "../rollout/again.ts";
import { COLLECT, type Collect } from "../rollout/collect-files.ts";
import type { BatchBudget } from "../rollout/budget.ts";
import { exitCodeOf } from "../rollout/exit-code.ts";
import { requireDescriptors } from "../host/descriptors.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { checkModel } from "../rollout/preflight.ts";
import { humanReporter, jsonReporter } from "../rollout/progress.ts";
import { runBatch, type BatchRequest } from "../rollout/rollout.ts";
import { summaryTable } from "../rollout/summary-table.ts";
import type { ResourcesServer } from "../resources/server.ts";
import { join } from "node:path";
import { detach, reportAccepted } from "./detach.ts";
import type { Machine } from "./machine.ts";
import { comparableSettings, otherSettings, versions } from "./manifest-settings.ts";
import { runOnEnd } from "./on-end.ts";
import { oneOf, wholeNumber } from "./options.ts";
import { resourcesServerOf } from "./resources.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import {
  settingsFrom,
  withBudgetFlags,
  withModelFlags,
  withResourcesFlags,
  withWorkerFlags,
  type SettingsFlags,
} from "./settings-flags.ts";
import { onHangup, stopSignals } from "./signals.ts";
import { taskSource, withTaskFlags, type TaskFlags } from "./task-source.ts";
import { openTerminal } from "./terminal.ts";

interface RunFlags extends SettingsFlags, ServerFlags, TaskFlags {
  out: string;
  json?: true;
  skipInvalid?: true;
  allowEmpty?: true;
  retry: RetryPolicy;
  retryFailed?: true;
  probe?: number;
  breaker?: BreakerMode;
  detach?: true;
  onEnd?: string;
  workers?: number;
  collect: Collect;
}

export function runCommand(setExitCode: (code: number) => void): Command {
  const command = new Command("run")
    .description("Run every task of a file; one result each in DIR. The same command again does what is missing.")
    .argument("<tasks.jsonl>", "one task per line: {id, input, tool_grants?, files?, ...}, a whole activation, a Gym or a GDPVal row")
    .requiredOption("--out <dir>", "output directory: results.jsonl, failures.jsonl, summary.json, manifest.json, artifacts/")
    .option("--retry <which>", "ended tasks to run again: infra (not the agent's fault), failed, none", oneOf(RETRY_POLICIES), "infra")
    .option("--retry-failed", "the same as --retry failed: all that is not gradable runs again")
    .option("--skip-invalid", "record rows that cannot be run as refused, and run the others")
    .option("--allow-empty", "a file without tasks is no error")
    .option("--probe <n>", "so many must begin before the rest is queued (default: 1 above 20 tasks)", wholeNumber(0))
    .option(
      "--breaker <mode>",
      "when different tasks fail alike in a row: auto (default) pauses and tries one from time to time, stop ends the run, off goes on",
      oneOf(BREAKER_MODES),
    )
    .option("--json", "progress and results as JSON lines on stdout")
    .option("--detach", "go on without this terminal, logging to DIR/rollcall.log")
    .option("--on-end <cmd>", "shell command to run at the end; gets the path of summary.json")
    .option("--workers <n>", "with REDIS_URL: also work in this process, n sessions at once (default: only follow)", wholeNumber(1));
  withServerFlags(withTaskFlags(command)).option(
    "--collect <which>",
    "with --server: files of results to bring to DIR/artifacts: all, outputs, none",
    oneOf(COLLECT),
    "outputs",
  );
  return withModelFlags(withWorkerFlags(withResourcesFlags(withBudgetFlags(command)))).action(async (tasks: string, flags: RunFlags) => {
    setExitCode(await run(tasks, flags));
  });
}

async function run(tasks: string, flags: RunFlags): Promise<number> {
  const terminal = openTerminal();
  const { server: url, collect } = flags;
  if (url !== undefined && flags.workers !== undefined)
    throw new RollcallError("flags_conflict", "--workers works on a Redis, and with --server there is none: leave one of them away");
  const settings = await settingsFrom(flags);
  const resources = resourcesServerOf(settings);
  if (url !== undefined && resources !== null)
    throw new RollcallError(
      "flags_conflict",
      "--resources-server works where the queue is (here, or with REDIS_URL), not yet through --server: leave one of them away",
    );
  if (flags.detach === true) return detached(flags.out, terminal);

  const worksHere = url === undefined && (settings.redis_url === undefined || flags.workers !== undefined);
  if (worksHere) requireDescriptors(flags.workers ?? settings.concurrency);
  const stop = stopSignals();
  const offHangup = onHangup(() => terminal.redirect(join(flags.out, OUTPUT_FILES.log)));
  let machine: Promise<Machine> | null = null;
  const prepared = (): Promise<Machine> =>
    (machine ??= import("./machine.ts").then(({ prepareMachine }) => prepareMachine(settings, process.env)));
  try {
    const { summary, summaryPath } = await runBatch(await batchRequest(tasks, flags, settings, resources, stop.signal), {
      reporter: flags.json === true ? jsonReporter((value) => terminal.data(JSON.stringify(value)), terminal) : humanReporter(terminal),
      async openFleet(out, runId) {
        if (url !== undefined) {
          const { openServerFleet } = await import("./open-server-fleet.ts");
          return openServerFleet({ out, runId, url, collect, flags, settings, env: process.env, say: (line) => terminal.line(line) });
        }
        const { openFleet } = await import("./open-fleet.ts");
        const workers = worksHere ? (flags.workers ?? settings.concurrency) : 0;
        return openFleet({ out, runId, machine: prepared, settings, env: process.env, workers, server: resources, terminal });
      },
      async preflight(check) {
        if (!worksHere) return; // other workers have their own Codex, network and variables
        await prepared();
        await checkModel(check, process.env);
      },
      onAccepted: reportAccepted,
      stop,
    });
    terminal.data(flags.json === true ? JSON.stringify({ event: "summary", ...summary }) : summaryTable(summary));
    terminal.line(`results: ${flags.out}`);
    if ((summary.unverified ?? 0) > 0)
      terminal.line(`not verified: ${summary.unverified}; \`rollcall verify --out ${flags.out} --resources-server URL\` does it again`);
    if (summary.not_started > 0)
      terminal.line(`not started (budget): ${summary.not_started}; the same command with a larger budget runs them`);
    if (summary.interrupted) terminal.line("interrupted: what ended is saved, the same command goes on");
    if (flags.onEnd !== undefined) {
      const problem = await runOnEnd(flags.onEnd, summaryPath);
      if (problem !== null) terminal.line(`warning: --on-end: ${problem}`);
    }
    return exitCodeOf(summary, { allowEmpty: flags.allowEmpty === true });
  } finally {
    stop.dispose();
    offHangup();
  }
}

async function batchRequest(
  tasks: string,
  flags: RunFlags,
  settings: Settings,
  server: ResourcesServer | null,
  stop: AbortSignal,
): Promise<BatchRequest> {
  const source = await taskSource(tasks, flags, settings, stop);
  return {
    out: flags.out,
    tasks: source,
    skipInvalid: flags.skipInvalid === true,
    allowEmpty: flags.allowEmpty === true,
    retry: flags.retryFailed === true ? "failed" : flags.retry,
    probe: flags.probe ?? null,
    breaker: flags.breaker ?? settings.breaker.mode,
    budget: budgetOf(settings),
    comparable: comparableSettings(settings, {
      repeats: flags.repeats,
      skillsSha256: (await skillsIn(settings.skills_dir)).sha256,
      server,
    }),
    otherSettings: otherSettings(settings),
    versions: versions(settings),
  };
}

function budgetOf({ budget: { max_model_calls, max_tokens, max_hours } }: Settings): BatchBudget {
  return { max_model_calls: max_model_calls ?? null, max_tokens: max_tokens ?? null, max_hours: max_hours ?? null };
}

async function detached(out: string, terminal: ReturnType<typeof openTerminal>): Promise<number> {
  const child = await detach(out);
  if ("exitCode" in child) {
    terminal.line(`the detached run ended at once with exit code ${child.exitCode}; see ${child.log}`);
    return child.exitCode;
  }
  terminal.data(`running detached as process ${child.pid}`);
  terminal.line(`follow: tail -f ${child.log}\nstop:   kill -TERM ${child.pid} (what ended is saved; the same command goes on)`);
  return 0;
}
