// SPDX-License-Identifier: Apache-2.0
import { attemptChecks } from "./check-attempts.ts";
import { check, type Check } from "./check.ts";
import { endChecks } from "./check-ends.ts";
import type { RunFacts } from "./facts.ts";
import { repeatsIn, type Repeat } from "./reasons.ts";
import type { Fault } from "./schedule.ts";

export interface Verdict {
  checks: Check[];
  repeats: Repeat[];
  ok: boolean;
}

const NEEDED_TO_START: ReadonlySet<Fault> = new Set(["redis_kill", "redis_freeze", "disk_full"]);
/** A start takes that long at most, on a busy machine. */
const START_MS = 15_000;

/** Compares what a run left with what was promised. Pure. */
export function judge(facts: RunFacts): Verdict {
  const repeats = repeatsIn(facts);
  const checks = [...endChecks(facts), ...attemptChecks(facts, repeats), nothingLeft(facts), noSecrets(facts), nobodyEndedByItself(facts)];
  return { checks, repeats, ok: checks.every(({ breaches }) => breaches.length === 0) };
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
