// SPDX-License-Identifier: Apache-2.0
import { check, type Check } from "./check.ts";
import type { RunFacts, StoredEnd } from "./facts.ts";
import type { Repeat } from "./reasons.ts";

/** A file's time and this process's clock are of one machine; what is written takes a moment to be there. */
const SLACK_MS = 1_000;
/** An attempt that took its number before the commit hears of it with its worker's next heartbeat at the latest, or is seen late. */
const HEARS_MS = 4_000;

/** Whether each attempt had to be, is counted, and none came after the end. Pure. */
export function attemptChecks(facts: RunFacts, repeats: readonly Repeat[]): Check[] {
  return [nothingAfterTheCommit(facts, repeats), attemptsOfTheirOwn(facts), repeatsHaveReasons(repeats)];
}

function nothingAfterTheCommit(facts: RunFacts, repeats: readonly Repeat[]): Check {
  const began = facts.ends.flatMap((end) =>
    facts.runs
      .filter((run) => run.activation_id === end.activation_id && run.began_at > end.committed_at + HEARS_MS)
      .map(
        (run) => `${end.activation_id}: attempt ${run.attempt} began ${run.began_at - Math.round(end.committed_at)} ms after the commit`,
      ),
  );
  const finished = facts.ends.flatMap((end) =>
    facts.finishes
      .filter(({ task_id, at }) => task_id === end.task_id && at > end.committed_at + SLACK_MS)
      .filter(({ thread_id }) => !isForcedDouble(facts, repeats, end, thread_id))
      .map(({ at }) => `${end.activation_id}: finish was called ${at - Math.round(end.committed_at)} ms after the commit`),
  );
  return check("no Codex run and no finish call after a commit", null, null, [...began, ...finished]);
}

/** The call came from an attempt that began before the end, beside another one for which there was a reason. */
function isForcedDouble({ runs }: RunFacts, repeats: readonly Repeat[], end: StoredEnd, thread: string | null): boolean {
  const run = runs.find(({ activation_id, threads }) => activation_id === end.activation_id && thread !== null && threads.includes(thread));
  if (run === undefined || run.began_at > end.committed_at + HEARS_MS) return false;
  return repeats.some(({ activation_id, reason }) => activation_id === end.activation_id && reason !== null);
}

function attemptsOfTheirOwn({ tasks, ends, runs }: RunFacts): Check {
  const shared = runs
    .filter(({ threads, sandboxes }) => threads.length > 1 || sandboxes > 1)
    .map(
      ({ activation_id, attempt, threads, sandboxes }) =>
        `${activation_id}: ${threads.length} Codex sessions in ${sandboxes} sandboxes ran as attempt ${attempt}`,
    );
  const missing = ends.flatMap((end) =>
    runs
      .filter(
        ({ activation_id, attempt, saved }) =>
          activation_id === end.activation_id &&
          saved !== null &&
          saved.ended_at < end.committed_at - SLACK_MS &&
          !end.attempts.includes(attempt),
      )
      .map(({ attempt }) => `${end.activation_id}: its result does not tell of attempt ${attempt}`),
  );
  const limits = new Map(tasks.map(({ task_id, max_attempts }) => [task_id, max_attempts]));
  const tooMany = ends.flatMap(({ activation_id, task_id }) => {
    const charged = runs.filter((run) => run.activation_id === activation_id && run.saved?.charged === true).length;
    const limit = limits.get(task_id) ?? Number.POSITIVE_INFINITY;
    return charged > limit ? [`${activation_id}: ${charged} attempts were charged, ${limit} allowed`] : [];
  });
  return check("each attempt has a number of its own, is told of, and counts", null, runs.length, [...shared, ...missing, ...tooMany]);
}

function repeatsHaveReasons(repeats: readonly Repeat[]): Check {
  const breaches = repeats
    .filter(({ reason }) => reason === null)
    .map(({ activation_id, attempt }) => `${activation_id}: nothing explains attempt ${attempt}`);
  return check("each attempt after the first has a reason", repeats.length, repeats.length - breaches.length, breaches);
}
