// SPDX-License-Identifier: Apache-2.0
import type { InjectedFault, PhysicalRun, RunFacts } from "./facts.ts";
import type { Fault } from "./schedule.ts";

/** An attempt after the first one of its activation. */
export interface Repeat {
  activation_id: string;
  attempt: number;
  /** It began while the one before may still have run. */
  at_once: boolean;
  /** Why there had to be another one; null = nothing explains it: a breach. */
  reason: string | null;
}

/** After a fault is over its consequences come to light: a claim found lost, a connection found dead. */
const AFTERMATH_MS = 10_000;
const FOR_EVERYBODY: ReadonlySet<Fault> = new Set(["redis_kill", "redis_freeze", "disk_full"]);
const ON_WORKERS: ReadonlySet<Fault> = new Set(["worker_kill", "worker_freeze", "worker_restart"]);
/** A worker that is stopped in order gives back what runs; the others lose it. */
const LOSES_CLAIMS: ReadonlySet<Fault> = new Set(["worker_kill", "worker_freeze", "redis_kill", "redis_freeze"]);

/** All attempts after the first, each with its reason. Pure. */
export function repeatsIn(facts: RunFacts): Repeat[] {
  const byActivation = new Map<string, PhysicalRun[]>();
  for (const run of facts.runs) byActivation.set(run.activation_id, [...(byActivation.get(run.activation_id) ?? []), run]);
  return [...byActivation.values()].flatMap((runs) => {
    const inOrder = [...runs].sort((a, b) => a.attempt - b.attempt);
    return inOrder.slice(1).map((run, index): Repeat => {
      const before = inOrder[index]!;
      return {
        activation_id: run.activation_id,
        attempt: run.attempt,
        at_once: before.saved !== null && run.began_at < before.saved.ended_at,
        reason: reasonOf(before, run, facts),
      };
    });
  });
}

function reasonOf(before: PhysicalRun, next: PhysicalRun, facts: RunFacts): string | null {
  const { saved } = before;
  if (saved !== null && saved.failure_kind !== "shutdown" && saved.status === "failed" && !saved.terminal) {
    const known = saved.cause_code !== "unknown" || facts.faults.some((each) => each.injected && overlaps(each, before, saved.ended_at));
    return known ? `attempt ${before.attempt} failed: ${saved.failure_kind}/${saved.cause_code}` : null;
  }
  const allowed =
    saved?.failure_kind !== "shutdown" ? null : saved.cause_code === "lock_lost" ? LOSES_CLAIMS : new Set<Fault>(["worker_restart"]);
  // What ended well can be hit until it is committed, and that is after its record was saved.
  const until = saved?.status === "failed" ? saved.ended_at : next.began_at;
  const end = Math.max(until, before.began_at);
  const fault = faultDuring(facts.faults, before, end, allowed);
  const how =
    saved === null
      ? "left nothing"
      : saved.failure_kind === "shutdown"
        ? `was given up (${saved.cause_code})`
        : `ended (${saved.status}) before it could be committed`;
  if (fault !== null) return `attempt ${before.attempt} ${how}: ${fault.fault}, ${fault.detail}`;
  if (saved?.cause_code === "shutdown") return null;
  const stall = facts.stalls.find((each) => overlaps(each, before, end));
  return stall === undefined
    ? null
    : `attempt ${before.attempt} ${how}: the machine stood still for ${((stall.to - stall.from) / 1_000).toFixed(1)} s`;
}

/** A fault that can have hit this run between its beginning and `end`. */
function faultDuring(
  faults: readonly InjectedFault[],
  run: PhysicalRun,
  end: number,
  allowed: ReadonlySet<Fault> | null,
): InjectedFault | null {
  const hits = ({ fault, pids }: InjectedFault): boolean =>
    FOR_EVERYBODY.has(fault) || (ON_WORKERS.has(fault) && (run.worker_pid === null || pids.includes(run.worker_pid)));
  return (
    faults.find((each) => each.injected && hits(each) && (allowed === null || allowed.has(each.fault)) && overlaps(each, run, end)) ?? null
  );
}

function overlaps(fault: { from: number; to: number }, { began_at }: PhysicalRun, end: number): boolean {
  return fault.from <= end && fault.to + AFTERMATH_MS >= began_at;
}
