// SPDX-License-Identifier: Apache-2.0
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { RunEnd } from "../activation/ports.ts";
import type { AttemptReport } from "../activation/settle.ts";
import { STAGES, type AttemptTelemetry } from "../activation/telemetry.ts";
import { toolCallRecordSchema } from "../contract/observation.ts";
import { LEFTOVER_KINDS } from "../host/leftover.ts";
import type { Floors, Room } from "../host/room.ts";
import type { LockLoss } from "../queue/activation-worker.ts";
import type { Removed } from "../sandbox/reaper.ts";
import { closed } from "./closed.ts";
import { END_LABELS, endLabels, handedBackLabels, type EndLabels } from "./end-labels.ts";

/** Seconds; from the writing of a file to a session of a working day. */
const SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600];
const MB = 1024 * 1024;
const PHASES = ["queued", "setup", "run", "collect"] as const;
const TOOL_STATUSES = new Set<string>(toolCallRecordSchema.shape.status.options);
const TOKEN_KINDS = ["input", "cached_input", "cache_write_input", "output", "reasoning_output"] as const;
const STAGE_NAMES = new Set<string>(STAGES);

/** What one worker process counts. Everything is only told here; nothing asks, and nothing throws. */
export interface WorkerMetrics extends Omit<AttemptTelemetry, "stage" | "traceparent"> {
  stageEnded(name: string, ms: number): void;
  lockLost(how: LockLoss): void;
  removed(what: Removed): void;
  /** What is left on this host, and why nothing is taken (null = it is). */
  room(room: Room, heldBack: boolean): void;
}

export interface WorkerMetricsFacts {
  concurrency: number;
  floors: Floors;
  /** Sessions now; asked when somebody scrapes. */
  running: () => number;
}

/** Made once per process. */
export function workerMetrics(registry: Registry, facts: WorkerMetricsFacts): WorkerMetrics {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> =>
    new Counter({ name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> =>
    new Gauge({ name, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[]): Histogram<L> =>
    new Histogram({ name, help, labelNames, buckets: SECONDS, registers });

  const started = counter("rollcall_attempts_started_total", "Attempts begun: physical runs of an activation.");
  const ended = counter(
    "rollcall_attempts_ended_total",
    "Attempts that left this worker, by what became of the activation (outcome: ended, retry, back_off, handed_back, or overtaken: another worker had ended it) and how the attempt ended.",
    ["outcome", ...END_LABELS],
  );
  const charged = counter("rollcall_attempts_charged_total", "Attempts that count against max_attempts.");
  const phases = histogram(
    "rollcall_attempt_phase_duration_seconds",
    "The timing of results: queued (since it was enqueued, so earlier attempts and parking are in it), setup, run (Codex), collect.",
    ["phase"],
  );
  const stages = histogram("rollcall_stage_duration_seconds", "Each stage of an attempt; what failed too.", ["stage"]);
  const tokens = counter(
    "rollcall_tokens_total",
    "Tokens of attempts as they end, failed ones and their subagents' too. cached_input and cache_write_input are parts of input, reasoning_output of output.",
    ["kind"],
  );
  const modelCalls = counter(
    "rollcall_model_calls_total",
    "Calls of the model by its sessions, as Codex's transcript and events tell: answered, or reconnected (Codex lost the stream or was refused, and called again).",
    ["outcome"],
  );
  const toolCalls = counter("rollcall_tool_calls_total", "Calls of tools, of granted servers (mcp) and Codex's own (codex), by status.", [
    "kind",
    "status",
  ]);
  const toolSeconds = histogram("rollcall_tool_call_duration_seconds", "Calls of tools whose times are known.", ["kind"]);
  const replaced = counter(
    "rollcall_redaction_replacements_total",
    "Places in which redaction put [redacted] for a secret. The same text is looked at more than once: watch its rate, not its number.",
  );
  const canary = counter(
    "rollcall_canary_hits_total",
    "Places in which a secret was found after redaction, right before the commit. A fault of ours.",
  );
  const locks = counter(
    "rollcall_locks_lost_total",
    "Claims lost while their session ran: renewal_failed (Redis had given it up), cut_off (Redis could not be reached).",
    ["how"],
  );
  const reaped = counter("rollcall_reaper_removals_total", "Leftovers of dead workers that this worker removed, or could not.", [
    "kind",
    "outcome",
  ]);
  gauge("rollcall_worker_concurrency", "Sessions at once that this worker takes.").set(facts.concurrency);
  const running: Gauge = new Gauge({
    name: "rollcall_worker_running",
    help: "Sessions that this worker has now.",
    registers,
    collect: (): void => running.set(facts.running()),
  });
  const held = gauge("rollcall_worker_held_back", "1 while this worker takes nothing because there is too little room (settings: floors).");
  const freeBytes = gauge(
    "rollcall_host_free_bytes",
    "What is left on this host: disk (the fullest of the places that are used), memory.",
    ["resource"],
  );
  const wantedBytes = gauge("rollcall_host_floor_bytes", "What must be left for another session to begin; 0: not looked at.", ["resource"]);
  const freePids = gauge("rollcall_host_free_processes", "Processes that may still be started on this host.");
  gauge("rollcall_host_floor_processes", "How many must be left for another session to begin; 0: not looked at.").set(facts.floors.pids);
  wantedBytes.set({ resource: "disk" }, facts.floors.disk_mb * MB);
  wantedBytes.set({ resource: "memory" }, facts.floors.memory_mb * MB);
  // So that a rate is there from the first event on, and an alert has something to look at.
  for (const how of ["renewal_failed", "cut_off"] as const satisfies readonly LockLoss[]) locks.inc({ how }, 0);
  for (const kind of [...LEFTOVER_KINDS, "abandoned"]) for (const outcome of ["removed", "failed"]) reaped.inc({ kind, outcome }, 0);
  for (const kind of TOKEN_KINDS) tokens.inc({ kind }, 0);
  for (const outcome of ["answered", "reconnected"]) modelCalls.inc({ outcome }, 0);

  function observations({ observations: { records }, evidence }: AttemptReport): void {
    modelCalls.inc({ outcome: "reconnected" }, evidence?.reconnects ?? 0);
    for (const thread of evidence?.threads ?? []) modelCalls.inc({ outcome: "answered" }, thread.model_calls);
    for (const record of records) {
      if (record.kind !== "tool_call") continue;
      const kind = record.server_name === undefined ? "codex" : "mcp";
      toolCalls.inc({ kind, status: closed(TOOL_STATUSES, record.status) });
      if (record.duration_ms !== null) toolSeconds.observe({ kind }, record.duration_ms / 1_000);
    }
  }

  return {
    begun: () => started.inc(),
    ended(report, end, secretsReplaced) {
      const { outcome, labels, charged: counts } = endOf(report, end);
      ended.inc({ outcome, ...labels });
      if (counts) charged.inc();
      replaced.inc(secretsReplaced);
      for (const phase of PHASES) {
        const ms = report.timing[`${phase}_ms`];
        if (ms !== null) phases.observe({ phase }, ms / 1_000);
      }
      const { usage } = report;
      if (usage !== null) for (const kind of TOKEN_KINDS) tokens.inc({ kind }, usage[`${kind}_tokens`] ?? 0);
      observations(report);
    },
    canaryHits: (count) => canary.inc(count),
    stageEnded: (name, ms) => stages.observe({ stage: closed(STAGE_NAMES, name) }, ms / 1_000),
    lockLost: (how) => locks.inc({ how }),
    removed: ({ kind, done }) => reaped.inc({ kind, outcome: done ? "removed" : "failed" }),
    room({ disk, memory_mb, pids }, heldBack) {
      held.set(heldBack ? 1 : 0);
      if (disk.length > 0) freeBytes.set({ resource: "disk" }, Math.min(...disk.map(({ mb }) => mb)) * MB);
      if (memory_mb !== null) freeBytes.set({ resource: "memory" }, memory_mb * MB);
      if (pids !== null) freePids.set(pids);
    },
  };
}

/** What became of the activation by this attempt, and how it ended. Pure. */
function endOf({ worker }: AttemptReport, end: RunEnd): { outcome: RunEnd["kind"] | "overtaken"; labels: EndLabels; charged: boolean } {
  if (end.kind === "retry" || end.kind === "back_off")
    return { outcome: end.kind, labels: endLabels(end.attempt), charged: end.attempt.charged };
  if (end.kind === "handed_back") return { outcome: end.kind, labels: handedBackLabels(end.reason), charged: false };
  const { result } = end;
  const isOurs = result.worker?.id === worker.id;
  return {
    outcome: isOurs ? "ended" : "overtaken",
    labels: endLabels(result),
    charged: isOurs && result.attempts.at(-1)?.charged === true,
  };
}
