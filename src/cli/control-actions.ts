// SPDX-License-Identifier: Apache-2.0
import { hostname, userInfo } from "node:os";
import type { CancelMark } from "../activation/ports.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import type { ControlAction, Outcome } from "../queue/answers.ts";
import { answerTo } from "../queue/answers.ts";
import { countPending, untilNone } from "../queue/await-ends.ts";
import { cancelActivation, cancelRun } from "../queue/cancel.ts";
import type { ActivationState } from "../queue/find-activation.ts";
import { pauseRun, resumeRun } from "../queue/pause.ts";
import { retryActivations, retryRun, type RetryAnswer } from "../queue/retry.ts";
import { runStatus } from "../queue/run-status.ts";
import { liveWorkers } from "../queue/worker-lease.ts";
import { findKnown } from "../resources/find-rollouts.ts";
import { EXIT } from "../rollout/exit-code.ts";
import type { ControlFlags } from "./control.ts";
import { controlServer } from "./control-server.ts";
import { cancelText, pauseText, retryText } from "./control-text.ts";
import { findTarget, type Target } from "./control-target.ts";
import { openDesk, runOf, type Desk } from "./desk.ts";
import { clientOf } from "./server-client.ts";
import { showStatus } from "./show-status.ts";
import { printable } from "../printable.ts";

/** What a command answers: for programs, for people, and how it exits. */
export interface Reply {
  data: Record<string, unknown>;
  lines: string[];
  exitCode: number;
}

/** Does what was asked, prints one answer and returns the exit code. Throws RollcallError, e.g. "id_unknown". */
export async function control(
  action: ControlAction,
  id: string | null,
  flags: ControlFlags,
  { settings, env }: { settings: Settings; env: Environment },
): Promise<number> {
  if (flags.server !== undefined) return print(action, await throughServer(action, id, flags.server, flags, { settings, env }), flags);
  const desk = await openDesk({ settings, env, out: flags.out ?? null, records: action === "cancel" || action === "retry" });
  try {
    const target = await findTarget(desk, id, { run: flags.run === true });
    return print(action, await replyTo(action, desk, target, flags), flags);
  } finally {
    await desk.close();
  }
}

function print(action: ControlAction, { data, lines, exitCode }: Reply, flags: ControlFlags): number {
  process.stdout.write(printable(`${flags.json === true ? JSON.stringify({ action, ...data }) : lines.join("\n")}\n`));
  return exitCode;
}

async function throughServer(
  action: ControlAction,
  id: string | null,
  url: string,
  flags: ControlFlags,
  given: { settings: Settings; env: Environment },
): Promise<Reply> {
  const client = await clientOf(url, flags, given);
  return controlServer(action, client, id ?? (await runOf(flags.out)), flags);
}

async function replyTo(action: ControlAction, desk: Desk, target: Target, flags: ControlFlags): Promise<Reply> {
  switch (action) {
    case "cancel":
      return target.kind === "run" ? cancelWhole(desk, target.run_id, flags) : cancelOne(desk, target, flags);
    case "pause":
    case "resume":
      return setPause(action, desk, requireRun(action, target), flags);
    case "retry":
      return retry(desk, target, flags);
    case "status":
      return showStatus(desk, target);
    default:
      return action satisfies never;
  }
}

async function cancelOne({ queues }: Desk, target: Extract<Target, { kind: "activation" }>, flags: ControlFlags): Promise<Reply> {
  const { activation_id } = target;
  const asked =
    target.found.state === "ended"
      ? { ...target.found, outcome: "nothing" as Outcome }
      : await cancelActivation(queues, activation_id, markOf(flags));
  const look = async () => (await findKnown(queues, [activation_id]))[0]!;
  const left =
    asked.outcome === "nothing" ? 0 : await untilNone(async () => ((await look()).state === "ended" ? 0 : 1), flags.wait * 1_000);
  const status = asked.outcome === "nothing" ? target.found.status : (await look()).status;
  const { run_id, state, outcome } = asked;
  return {
    data: { activation_id, run_id, state, outcome, status, still_ending: left },
    lines: cancelText(activation_id, [{ state, count: 1 }], { left, status, out: flags.out }),
    exitCode: left === 0 ? EXIT.ok : EXIT.someFailed,
  };
}

async function cancelWhole({ queues }: Desk, runId: string, flags: ControlFlags): Promise<Reply> {
  const before = Object.values((await runStatus(queues, runId)).ended).reduce((sum, count) => sum + count, 0);
  const counts = await cancelRun(queues, runId, markOf(flags));
  const left = await untilNone(() => countPending(queues, runId), flags.wait * 1_000);
  const found = (Object.entries(counts) as [ActivationState, number][]).map(([state, count]) => ({ state, count }));
  if (before > 0) found.push({ state: "ended", count: before });
  return {
    data: {
      run_id: runId,
      found: found.map(({ state, count }) => ({ state, count, outcome: answerTo("cancel", state).outcome })),
      still_ending: left,
    },
    lines: cancelText(`run ${runId}`, found, { left, status: null, out: flags.out }),
    exitCode: left === 0 ? EXIT.ok : EXIT.someFailed,
  };
}

async function setPause(action: "pause" | "resume", { queues }: Desk, runId: string, flags: ControlFlags): Promise<Reply> {
  const changed = action === "pause" ? await pauseRun(queues, runId, markOf(flags)) : await resumeRun(queues, runId);
  const status = await runStatus(queues, runId);
  return { data: { changed, ...status, run_id: runId }, lines: pauseText(action, runId, changed, status), exitCode: EXIT.ok };
}

async function retry(desk: Desk, target: Target, flags: ControlFlags): Promise<Reply> {
  const { queues, store, keys } = desk;
  if (store === null)
    throw new RollcallError("artifacts_missing", "retry needs the results: set artifacts (or ROLLCALL_ARTIFACTS) to where they are");
  if (keys === null) throw new RollcallError("secret_key_missing", "retry queues anew: set ROLLCALL_SECRET_KEY to the deployment's key");
  const answers: RetryAnswer[] = [];
  if (target.kind === "activation") answers.push(...(await retryActivations({ queues, store, keys }, [target.activation_id])));
  else for await (const some of retryRun({ queues, store, keys }, target.run_id, isNotGradable)) answers.push(...some);
  const run_id = target.kind === "run" ? target.run_id : target.found.run_id;
  const from = { run_id, out: flags.out, tasks: desk.run?.tasks.path ?? null, server: undefined };
  const again = { from, workers: (await liveWorkers(queues)).length };
  return {
    data: { ...(target.kind === "run" ? { run_id: target.run_id } : {}), activations: answers },
    lines: retryText(target.kind === "run" ? `run ${target.run_id}` : target.activation_id, answers, again),
    exitCode: answers.every(({ outcome }) => outcome === "done") ? EXIT.ok : EXIT.someFailed,
  };
}

/** As `run --retry failed` sees it. */
function isNotGradable(status: string): boolean {
  return status !== "completed" && status !== "incomplete";
}

function requireRun(action: string, target: Target): string {
  if (target.kind === "run") return target.run_id;
  const run = target.found.run_id;
  throw new RollcallError(
    "run_needed",
    `${action} is of whole runs, and ${target.activation_id} is an activation${run === null ? "" : `: rollcall ${action} ${run}`}`,
  );
}

function markOf({ by, reason }: ControlFlags): CancelMark {
  return { by: by ?? `${userName()}@${hostname()}`, at: new Date().toISOString(), reason };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown"); // a user without an entry, as in containers
  }
}
