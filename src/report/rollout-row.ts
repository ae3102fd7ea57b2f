// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { answeredCalls } from "../contract/session-usage.ts";
import { factsOf, type ResultFacts } from "../rollout/facts.ts";

/** Longest reason that is kept of a result for an example. */
const REASON_CHARACTERS = 400;

const toolCallSchema = z.object({
  kind: z.literal("tool_call"),
  tool_name: z.string(),
  server_name: z.string().optional(),
  duration_ms: z.number().nullable(),
  status: z.string(),
});
const invocationSchema = z.object({ kind: z.literal("agent_invocation"), model_calls: z.array(z.unknown()) });
const recordSchema = z.union([toolCallSchema, invocationSchema, z.unknown().transform(() => null)]);

const attemptSchema = z.object({
  attempt: z.number(),
  failure: z.object({}).nullable(),
  evidence: z
    .object({
      turn_started: z.boolean(),
      reconnects: z.number(),
      /** Earlier records do not say. */
      threads: z.array(z.object({ model_calls: z.number() })).catch([]),
    })
    .nullable()
    .catch(null),
  observations: z.object({ records: z.array(recordSchema), gaps: z.array(z.object({ code: z.string() })) }),
});

/** What a report reads of a result beyond the facts that a batch counts by. */
const detailSchema = z.object({
  task_id: z.object({ taskset: z.string(), task_id: z.string() }),
  episode_id: z.object({ rollout_id: z.string() }),
  response: z.object({ model: z.string() }).nullable(),
  failure: z.object({ failure_reason: z.string(), server_names: z.array(z.string()).catch([]) }).nullable(),
  attempts: z.array(attemptSchema),
  artifacts: z.array(z.object({ quarantined: z.boolean() })),
  ended_at: z.string(),
  verification: z.looseObject({ error: z.unknown().optional() }).nullish().catch(null),
});

/** One tool's calls in all attempts of a rollout. */
interface ToolUse {
  tool: string;
  server: string | null;
  calls: number;
  by_status: Record<string, number>;
  /** Of the calls of which it is known. */
  durations_ms: number[];
}

/** The attempts of a rollout, as far as what they asked of the model can be found out. */
interface AttemptTrace {
  attempt: number;
  /** 0 where no turn began; null = the record of the session does not list them all (Codex 0.144.4), the transcript may. */
  model_calls: number | null;
  /** Codex's events may tell of errors of the model server. */
  may_tell_errors: boolean;
}

/** The few hundred bytes of a result that a report works on: results are large, and only these are held for all. */
export interface RolloutRow {
  activation_id: string;
  generation: number;
  taskset: string;
  task_id: string;
  rollout_id: string;
  status: "completed" | "incomplete" | "failed" | "refused" | "cancelled";
  incomplete_cause: string | null;
  cause_class: string | null;
  cause_code: string | null;
  failure_kind: string | null;
  /** Redacted already, shortened here. */
  reason: string | null;
  startup_failed: boolean;
  model: string | null;
  ended_at: string;
  required_tools: string[];
  /** Successful calls of the last attempt, by tool. */
  tools_called: Record<string, number>;
  tools: ToolUse[];
  attempts: AttemptTrace[];
  /** Of all attempts together. */
  usage: ResultFacts["usage"];
  /** How much of what its attempts took is told. */
  sessions: ResultFacts["sessions"];
  run_ms: number | null;
  reward: number | null;
  /** Somebody tried to verify it and could not. */
  verification_failed: boolean;
  quarantined: number;
}

/** The row of a line of results.jsonl; null when it is no result. Pure. */
export function rolloutRow(value: unknown): RolloutRow | null {
  const facts = factsOf(value);
  const parsed = detailSchema.safeParse(value);
  if (facts === null || !parsed.success) return null;
  const detail = parsed.data;
  return {
    activation_id: facts.activation_id,
    generation: facts.generation,
    taskset: detail.task_id.taskset,
    task_id: detail.task_id.task_id,
    rollout_id: detail.episode_id.rollout_id,
    status: facts.status,
    incomplete_cause: facts.incomplete_cause,
    cause_class: facts.cause_class,
    cause_code: facts.failure?.cause_code ?? null,
    failure_kind: facts.failure?.failure_kind ?? null,
    reason: detail.failure?.failure_reason.slice(0, REASON_CHARACTERS) ?? null,
    startup_failed: facts.startup_failed,
    model: detail.response?.model ?? null,
    ended_at: detail.ended_at,
    required_tools: facts.evidence?.required_tools ?? [],
    tools_called: facts.evidence?.tools_called ?? {},
    tools: toolUses(detail.attempts),
    attempts: detail.attempts.map(traceOf),
    usage: facts.usage,
    sessions: facts.sessions,
    run_ms: facts.attempts > 0 ? (facts.timing?.run_ms ?? null) : null,
    reward: facts.reward,
    verification_failed: detail.verification?.error != null,
    quarantined: detail.artifacts.filter(({ quarantined }) => quarantined).length,
  };
}

function toolUses(attempts: z.infer<typeof detailSchema>["attempts"]): ToolUse[] {
  const uses = new Map<string, ToolUse>();
  for (const { observations } of attempts) {
    for (const record of observations.records) {
      if (record?.kind !== "tool_call") continue;
      const server = record.server_name ?? null;
      const key = JSON.stringify([server, record.tool_name]);
      const use = uses.get(key) ?? { tool: record.tool_name, server, calls: 0, by_status: {}, durations_ms: [] };
      uses.set(key, use);
      use.calls++;
      use.by_status[record.status] = (use.by_status[record.status] ?? 0) + 1;
      if (record.duration_ms !== null) use.durations_ms.push(record.duration_ms);
    }
  }
  return [...uses.values()];
}

function traceOf({ attempt, failure, evidence, observations: { records, gaps } }: z.infer<typeof attemptSchema>): AttemptTrace {
  const listed = records.find((record) => record?.kind === "agent_invocation")?.model_calls.length;
  const isWhole = listed !== undefined && !gaps.some(({ code }) => code === "model_call_join_key_unavailable");
  return {
    attempt,
    model_calls: evidence?.turn_started !== true ? 0 : (answeredCalls(evidence.threads) ?? (isWhole ? listed : null)),
    may_tell_errors: evidence !== null && (evidence.reconnects > 0 || failure !== null),
  };
}
