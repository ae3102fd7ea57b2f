// SPDX-License-Identifier: Apache-2.0
import type { RunFacts, StoredEnd } from "./facts.ts";
import { repeatsIn, type Repeat } from "./reasons.ts";
import type { Fault } from "./schedule.ts";

/** One promise, and everything that breaks it. */
export interface Check {
  name: string;
  /** How many there should be, and are; where that says something. */
  expected: number | null;
  found: number | null;
  breaches: string[];
}

export interface Verdict {
  checks: Check[];
  repeats: Repeat[];
  ok: boolean;
}

/** A file's time and this process's clock are of one machine; what is written takes a moment to be there. */
const SLACK_MS = 1_000;
const NEEDED_TO_START: ReadonlySet<Fault> = new Set(["redis_kill", "redis_freeze", "disk_full"]);
/** A start takes that long at most, on a busy machine. */
const START_MS = 15_000;

/** Compares what a run left with what was promised. Pure. */
export function judge(facts: RunFacts): Verdict {
  const repeats = repeatsIn(facts);
  const checks = [
    oneLineEach(facts),
    oneEndEach(facts),
    deliveredOnce(facts),
    sameEverywhere(facts),
    expectedEnds(facts),
    finishRecord(facts),
    nothingAfterTheCommit(facts, repeats),
    attemptsOfTheirOwn(facts),
    repeatsHaveReasons(repeats),
    cancelled(facts),
    nothingLeft(facts),
    noSecrets(facts),
    nobodyEndedByItself(facts),
  ];
  return { checks, repeats, ok: checks.every(({ breaches }) => breaches.length === 0) };
}

function oneLineEach({ tasks, lines }: RunFacts): Check {
  return check(
    "results.jsonl: one line for each task",
    tasks.length,
    lines.length,
    onceEach(
      tasks.map(({ task_id }) => task_id),
      lines.map(({ task_id }) => task_id),
    ),
  );
}

function oneEndEach({ tasks, ends }: RunFacts): Check {
  const breaches = onceEach(
    tasks.map(({ task_id }) => task_id),
    ends.map(({ task_id }) => task_id),
  );
  const again = ends
    .filter(({ generation }) => generation !== 0)
    .map(({ activation_id, generation }) => `${activation_id} has generation ${generation}`);
  const changed = ends
    .filter(({ changed }) => changed)
    .map(({ activation_id }) => `the result of ${activation_id} was replaced after it was committed`);
  return check("store: one result for each task, and it stays", tasks.length, ends.length, [...breaches, ...again, ...changed]);
}

function deliveredOnce({ ends, delivered }: RunFacts): Check {
  const name = "results queue: each result once";
  if (delivered === null) return check(name, ends.length, null, ["the results queue could not be read"]);
  return check(
    name,
    ends.length,
    delivered.length,
    onceEach(
      ends.map(({ activation_id }) => activation_id),
      delivered,
    ),
  );
}

function sameEverywhere({ lines, ends }: RunFacts): Check {
  const stored = new Map(ends.map((end) => [end.task_id, end]));
  const breaches = lines.flatMap(({ task_id, capture_key, status }) => {
    const end = stored.get(task_id);
    if (end === undefined || (end.capture_key === capture_key && end.status === status)) return [];
    return [`${task_id}: ${status} by ${capture_key} in results.jsonl, ${end.status} by ${end.capture_key} in the store`];
  });
  return check("results.jsonl and the store say the same", null, null, breaches);
}

function expectedEnds({ tasks, ends, cancels, faults }: RunFacts): Check {
  const asked = new Set(cancels.map(({ activation_id }) => activation_id));
  const killed = new Set(faults.filter(({ fault }) => fault === "codex_kill").flatMap(({ activations }) => activations));
  const kinds = new Map(tasks.map(({ task_id, kind }) => [task_id, kind]));
  const breaches = ends.flatMap(({ task_id, activation_id, status, cause }) => {
    const kind = kinds.get(task_id);
    const wanted = kind === "works" ? status === "completed" : kind === "server_down" ? status === "failed" : cause === "wall_clock";
    // A command of the model ran when its Codex was killed: it cannot be told from the model's own doing, and is final.
    const explained =
      (status === "cancelled" && asked.has(activation_id)) || (cause.startsWith("kill_shaped") && killed.has(activation_id));
    return wanted || explained ? [] : [`${task_id} (${kind ?? "not a task"}) ended ${status} ${cause}`];
  });
  return check("tasks end as they must", ends.length, ends.length - breaches.length, breaches);
}

/** What a result says of its finish call against what the tool server noted itself. */
function finishRecord({ tasks, ends, finishes, runs, faults }: RunFacts): Check {
  const works = new Set(tasks.filter(({ kind }) => kind === "works").map(({ task_id }) => task_id));
  const restarted = faults.some(({ fault }) => fault === "mcp_restart");
  const completed = ends.filter(({ task_id, status }) => status === "completed" && works.has(task_id));
  const breaches = completed.flatMap((end) => {
    const threads = runs.find((run) => run.activation_id === end.activation_id && run.attempt === end.attempt)?.threads ?? [];
    const served = finishes.filter(
      ({ task_id, thread_id }) => task_id === end.task_id && thread_id !== null && threads.includes(thread_id),
    );
    if (end.finish_calls === null) return [`${end.task_id} completed without evidence`];
    if (served.length < end.finish_calls)
      return [`${end.task_id} tells of ${end.finish_calls} finish calls of attempt ${end.attempt}, the tool server of ${served.length}`];
    // The answer to a call can be lost with the server: served, but not heard of.
    if (served.length > end.finish_calls && !restarted)
      return [`${end.task_id} tells of ${end.finish_calls} finish calls, the tool server of ${served.length}`];
    return end.finish_calls === 0 && !restarted ? [`${end.task_id} completed without a finish call`] : [];
  });
  return check(
    "results agree with the tool server's own record of finish calls",
    completed.length,
    completed.length - breaches.length,
    breaches,
  );
}

function nothingAfterTheCommit(facts: RunFacts, repeats: readonly Repeat[]): Check {
  const began = facts.ends.flatMap((end) =>
    facts.runs
      .filter((run) => run.activation_id === end.activation_id && run.began_at > end.committed_at + SLACK_MS)
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
  if (run === undefined || run.began_at > end.committed_at + SLACK_MS) return false;
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

function cancelled({ ends, cancels }: RunFacts): Check {
  const breaches = cancels.flatMap(({ activation_id, outcome }) => {
    const end = ends.find((each) => each.activation_id === activation_id);
    return outcome === "done" && end !== undefined && end.status !== "cancelled"
      ? [`${activation_id} was cancelled before it began, and ended ${end.status}`]
      : [];
  });
  return check("what was cancelled before it began does not run", cancels.length, null, breaches);
}

function nothingLeft({ left }: RunFacts): Check {
  const breaches = Object.entries(left).flatMap(([kind, list]) => list.map((each) => `${kind}: ${each}`));
  return check("nothing is left: processes, sandboxes, sockets, mounts, locks, files", 0, breaches.length, breaches);
}

function noSecrets({ secrets }: RunFacts): Check {
  const blind = secrets.missed_controls.map((what) => `the search itself does not find: ${what}`);
  return check("no byte of a secret in files, Redis and process arguments", 0, secrets.found.length, [...secrets.found, ...blind]);
}

function nobodyEndedByItself({ unexpected_ends, stuck, faults }: RunFacts): Check {
  // Whoever starts while Redis is away, or nothing can be written, says so and ends.
  const couldNotStart = (at: number): boolean =>
    faults.some(({ fault, from, to }) => NEEDED_TO_START.has(fault) && at >= from && at <= to + START_MS);
  const breaches = unexpected_ends
    .filter(({ at, detail }) => detail !== "exit code 2" || !couldNotStart(at))
    .map(({ who, detail }) => `${who} ended by itself: ${detail}`);
  return check("workers and producer end only when they are ended", null, null, stuck === null ? breaches : [...breaches, stuck]);
}

function onceEach(wanted: readonly string[], found: readonly string[]): string[] {
  const counts = new Map<string, number>(wanted.map((id) => [id, 0]));
  for (const id of found) counts.set(id, (counts.get(id) ?? 0) + 1);
  const known = new Set(wanted);
  return [...counts].flatMap(([id, count]) =>
    !known.has(id) ? [`${id} is not wanted`] : count === 0 ? [`${id} is lost`] : count > 1 ? [`${id} is there ${count} times`] : [],
  );
}

function check(name: string, expected: number | null, found: number | null, breaches: string[]): Check {
  return { name, expected, found, breaches };
}
