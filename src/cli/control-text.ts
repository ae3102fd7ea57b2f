// SPDX-License-Identifier: Apache-2.0
import { answerTo } from "../queue/answers.ts";
import type { ActivationState } from "../queue/find-activation.ts";
import type { RetryAnswer } from "../queue/retry.ts";
import type { RunStatus } from "../queue/run-status.ts";
import { pausedBy } from "../rollout/paused.ts";

// What the control commands print for people. Pure.

const MOST_SHOWN = 10;

export function cancelText(
  what: string,
  found: readonly { state: ActivationState; count: number }[],
  { left, status, out }: { left: number; status: string | null; out: string | undefined },
): string[] {
  const one = !what.startsWith("run ");
  const lines = found.map(({ state, count }) => `${one ? `${what} (${state})` : `${count} ${state}`}: ${answerTo("cancel", state).text}`);
  if (!one && found.length === 0) lines.push("nothing of it has not ended");
  if (one && status !== null) lines.push(`ended as ${status}`);
  if (left > 0) {
    const where = out === undefined ? "" : ` --out ${out}`;
    lines.push(`${left} still ending; \`rollcall status ${one ? what : what.slice(4)}${where}\` tells when`);
  }
  return one ? [lines.join("; ")] : [what, ...lines.map((line) => `  ${line}`)];
}

export function pauseText(action: "pause" | "resume", runId: string, changed: boolean, status: RunStatus): string[] {
  const held = status.waiting + status.parked + status.delayed;
  if (action === "resume") return [changed ? `run ${runId} goes on: ${held} wait` : `run ${runId} was not paused`];
  const begun = changed ? `run ${runId} is paused` : `run ${runId} was paused before${status.pause === null ? "" : pausedBy(status.pause)}`;
  return [`${begun}: ${held} are held back, ${status.running} running go on to their ends`];
}

export function retryText(what: string, answers: readonly RetryAnswer[], again: { from: Producer; workers: number }): string[] {
  const done = answers.filter(({ outcome }) => outcome === "done");
  const lost = answers.filter(({ why }) => why !== null);
  const others = answers.filter(({ outcome, why }) => outcome !== "done" && why === null);
  const lines: string[] = [];
  if (answers.length === 0) lines.push(`${what}: nothing of it ended other than completed or incomplete`);
  if (done.length > 0) lines.push(`${named(what, done)}: ${answerTo("retry", "ended").text}`);
  for (const { activation_id, state } of others) lines.push(`${activation_id} (${state}): ${answerTo("retry", state).text}`);
  for (const why of ["secrets_deleted", "job_removed"] as const) {
    const some = lost.filter((answer) => answer.why === why);
    if (some.length > 0) lines.push(`${named(what, some)}: not retried: ${WHY[why]}`);
  }
  if (lost.length > 0) lines.push(giveAgain(again.from));
  if (done.length > 0 && again.workers === 0) {
    lines.push(
      `no worker lives: ${again.from.out === undefined ? "start one with `rollcall worker`" : `rollcall worker --out ${again.from.out}, or the command of the run, runs it`}`,
    );
  }
  return lines;
}

/** Who queued it, as far as the command knows. */
export interface Producer {
  run_id: string | null;
  out: string | undefined;
  /** The task file of `out`. */
  tasks: string | null;
  server: string | undefined;
}

/** The command that makes from the task file what the queue cannot make. Pure. */
export function giveAgain({ run_id, out, tasks, server }: Producer): string {
  const through = server === undefined ? "" : ` --server ${word(server)}`;
  return out === undefined
    ? `give their tasks again: rollcall enqueue TASKS.jsonl --run-id ${run_id ?? "RUN"}${through} --again failed (TASKS.jsonl: the file that they are from)`
    : `give their tasks again: rollcall run ${word(tasks ?? "TASKS.jsonl")} --out ${word(out)}${through} --retry failed`;
}

/** As a shell takes it for one word. */
function word(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const WHY: Record<NonNullable<RetryAnswer["why"]>, string> = {
  secrets_deleted: "its secrets were deleted from the queue when it ended",
  job_removed: "it has no job in the queue: removed since, or never queued",
};

function named(what: string, answers: readonly RetryAnswer[]): string {
  if (!what.startsWith("run ")) return what;
  const ids = answers.slice(0, MOST_SHOWN).map(({ activation_id }) => activation_id);
  return `${answers.length} of ${what} (${ids.join(", ")}${answers.length > MOST_SHOWN ? ", ..." : ""})`;
}
