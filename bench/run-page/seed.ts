// SPDX-License-Identifier: Apache-2.0
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import { activationSchema } from "../../src/contract/activation.ts";
import type { CauseCode, Failure, FailureKind } from "../../src/contract/failure.ts";
import type { ToolCallRecord } from "../../src/contract/observation.ts";
import type { ActivationResult, Attempt, Status } from "../../src/contract/result.ts";
import { announceEnd } from "../../src/queue/ended.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import type { Queues } from "../../src/queue/queues.ts";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { attemptOf, resultOf } from "../../test/support/result-documents.ts";
import { inPieces } from "../api-load/rows.ts";

export const RUN = "run-of-many";
const SLOTS = 8;
const AT_ONCE = 50;
/** One of so many has its result in the store; so has the first of each cause. */
const COMMITTED_EVERY = 50;

const CAUSES: [share: number, status: Status, kind: FailureKind, cause: CauseCode, reason: string][] = [
  [0.02, "failed", "environment_server_failed", "mcp_server_unreachable", "MCP startup failed: connect ECONNREFUSED 127.0.0.1:7100"],
  [0.008, "failed", "agent_run_error", "exit_code", "Codex ended with exit code 1 before its turn was complete"],
  [0.004, "failed", "provider_unavailable", "stream_lost", "the model's stream was lost, and five reconnects did not bring it back"],
  [0.003, "cancelled", "cancelled", "cancelled", "cancelled by operator: not needed any more"],
];

/** The same numbers each time (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Ends of a run of `count` activations on so many workers, in their order, the last of them now. Pure but for the clock. */
export function endsOf(count: number, workers: number): ActivationResult[] {
  const next = random(7);
  const free = Array.from({ length: workers * SLOTS }, () => next() * 20_000);
  const results = Array.from({ length: count }, (_, index) => {
    const slot = free.indexOf(Math.min(...free));
    const run_ms = Math.round(8_000 * Math.exp(0.9 * (next() + next() + next() - 1.5)) + next() * 2_000);
    const from = free[slot]! + 300 + next() * 900;
    free[slot] = from + run_ms + 400;
    return { index, worker: `worker-${String(Math.floor(slot / SLOTS)).padStart(2, "0")}`, from, run_ms, dice: next() };
  });
  const shift = Date.now() - Math.max(...results.map(({ from, run_ms }) => from + run_ms));
  return results.map((each) => resultFrom(each, shift, next)).toSorted((one, other) => (one.ended_at < other.ended_at ? -1 : 1));
}

function resultFrom(
  { index, worker, from, run_ms, dice }: { index: number; worker: string; from: number; run_ms: number; dice: number },
  shift: number,
  next: () => number,
): ActivationResult {
  const id = `act-${RUN}-${String(index).padStart(5, "0")}`;
  let left = dice;
  const cause = CAUSES.find(([share]) => (left -= share) < 0);
  const status: Status = cause?.[1] ?? (dice > 0.97 ? "incomplete" : "completed");
  const failure: Failure | null =
    cause === undefined
      ? null
      : {
          failure_kind: cause[2],
          cause_code: cause[3],
          server_names: cause[3] === "mcp_server_unreachable" ? ["office"] : [],
          stage: "agent",
          failure_reason: cause[4],
          terminal: false,
          status_code: 502,
        };
  const started = shift + from;
  const iso = (at: number): string => new Date(at).toISOString();
  const calls = cause?.[3] === "mcp_server_unreachable" ? 0 : Math.floor(1 + 30 * next() ** 2);
  const records = Array.from({ length: calls }, (_, call): ToolCallRecord => {
    const at = started + (run_ms * call) / (calls + 1);
    return {
      kind: "tool_call",
      invocation_id: id,
      tool_call_id: `call-${call}`,
      tool_name: ["exec_command", "web_search", "fetch_web_page"][call % 3]!,
      ...(call % 3 === 0 ? {} : { server_name: "office" }),
      started_at: iso(at),
      completed_at: iso(at + 400),
      duration_ms: 400,
      timing_source: "artifact",
      status: "completed",
      error_type: null,
    };
  });
  const input_tokens = Math.round(4_000 + calls * 2_100 * (0.5 + next()));
  const observations: Attempt["observations"] = { source: "codex", records, gaps: [] };
  const who = { id: worker, host: "h", version: "0.1.0", codex_version: "0.144.4", sandbox_provider: "bubblewrap" };
  const attempt = attemptOf(0, {
    worker: who,
    status,
    failure,
    started_at: iso(started),
    ended_at: iso(started + run_ms),
    grants: [{ name: "office", required: true }],
    observations,
  });
  return resultOf(id, {
    run_id: RUN,
    task_id: { taskset: "gdpval", task_id: `task-${index}` },
    status,
    failure,
    cause_class: failure === null ? null : "infrastructure",
    incomplete_cause: status === "incomplete" ? "wall_clock" : null,
    attempts: [attempt],
    observations,
    worker: who,
    usage:
      calls === 0
        ? null
        : {
            input_tokens,
            output_tokens: 900,
            total_tokens: input_tokens + 900,
            cached_input_tokens: null,
            reasoning_output_tokens: null,
            cache_write_input_tokens: null,
          },
    timing: { queued_ms: from, setup_ms: 300, run_ms, collect_ms: 120 },
    ended_at: iso(started + run_ms),
  });
}

/** A run in which most have ended, by the functions that workers use, and `open` wait. Answers how long one end took, in ms. */
export async function seed(
  queues: Queues,
  store: ArtifactStore,
  { ends, open, secretKey }: { ends: readonly ActivationResult[]; open: number; secretKey: string },
): Promise<number> {
  const told = new Set<string>();
  const since = performance.now();
  for (const piece of inPieces(ends, AT_ONCE)) {
    await Promise.all(
      piece.map(async (result, index) => {
        const cause = result.failure?.cause_code ?? "";
        if (index % COMMITTED_EVERY === 0 || !told.has(cause)) await store.commit(result);
        told.add(cause);
        await announceEnd(queues, result);
      }),
    );
  }
  const took = (performance.now() - since) / ends.length;
  const waiting = Array.from({ length: open }, (_, index) =>
    activationSchema.parse({
      activation_id: `act-${RUN}-open-${index}`,
      run_id: RUN,
      task_id: { taskset: "gdpval", task_id: `open-${index}` },
      episode_id: { rollout_id: `open-${index}` },
      input: "do it",
      model: { name: "stand-in" },
      reply_to: null,
    }),
  );
  await enqueueActivations(queues, waiting, { keys: parseSecretKeys(secretKey) });
  return took;
}
