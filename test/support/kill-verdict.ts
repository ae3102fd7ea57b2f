// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Killed } from "./kill-outcome.ts";
import type { Phase } from "./kill-points.ts";

/** How an activation must go on whose process was killed in that phase. */
export const RIGHT: Record<Phase, string> = {
  waits: "it runs once, and nothing is charged",
  runs: "it runs again, and one attempt is charged",
  ended: "it does not run again",
};

/** Everything that is wrong with what became of an activation; a session too many where a busy machine lost a claim is not. Pure. */
export function problemsOf(killed: Killed | undefined, phase: Phase): string[] {
  if (killed === undefined) return ["it was not among the tasks"];
  const { died, result, lines, delivered, consumed, saved, sessions, charged } = killed;
  if (!died) return ["no process died here: the point was never reached"];
  if (result === null) return ["lost: there is no result"];
  const problems: string[] = [];
  const say = (holds: boolean, problem: string): void => void (holds || problems.push(problem));

  say(result.status === "completed" && result.failure === null, `it ended ${result.status}: ${JSON.stringify(result.failure)}`);
  say(
    result.artifacts.some(({ path }) => path === "outputs/report.md"),
    "its deliverable is missing",
  );
  say(lines === 1, `results.jsonl has it ${lines} times`);
  say(delivered === 1, `the results queue has it ${delivered} times`);
  say(consumed === 1, `its consumer got it ${consumed} times`);

  const last = result.episode_id.attempt;
  const handedBack = saved.filter(({ failure }) => failure?.failure_kind === "shutdown").length;
  const lost = phase === "runs" ? 1 : 0;
  say(last - handedBack === lost, `${last} attempts went before the one that ended it, ${lost} wanted`);
  say(charged >= lost && charged <= lost + handedBack, `${charged} attempts were charged, ${lost} wanted`);
  for (const { attempt, count } of sessions) {
    say(count === 1, `${count} Codex sessions ran as attempt ${attempt}`);
    say(attempt <= last, `Codex ran again, as attempt ${attempt}, after attempt ${last} had ended it`);
  }
  say(
    sessions.some(({ attempt }) => attempt === last),
    `attempt ${last} ended it without a Codex session`,
  );

  const told = result.attempts.map(({ attempt }) => attempt);
  say(
    isDeepStrictEqual(
      told,
      Array.from({ length: last + 1 }, (_, index) => index),
    ),
    `it tells of the attempts ${told.join(", ")}, and the last is ${last}`,
  );
  for (const attempt of result.attempts) {
    const own = saved.find((each) => each.attempt === attempt.attempt);
    const isTrue =
      own === undefined
        ? attempt.status === "failed" && attempt.charged && attempt.failure?.failure_kind === "session_lost"
        : isDeepStrictEqual(own, attempt);
    say(isTrue, `what it tells of attempt ${attempt.attempt} is not true`);
  }
  return problems;
}
