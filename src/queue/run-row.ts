// SPDX-License-Identifier: Apache-2.0
import { serversOf, type ExplainedServer } from "../activation/explain.ts";
import { shortened } from "../activation/shortened.ts";
import type { TaskId } from "../contract/identity.ts";
import type { Usage } from "../contract/response.ts";
import type { ActivationResult, CauseClass, Status } from "../contract/result.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { runScript, script } from "./script.ts";

/**
 * What is kept of one ended activation for a table of its whole run: about 250 bytes as it is kept, so that those of 10,000 are read
 * at once. Made of the result, which is redacted. Times are ISO 8601 or ms; null = not known.
 */
export interface RunRow {
  generation: number;
  status: Status;
  /** `taskset/task_id`, cut. */
  task: string | null;
  failure_kind: string | null;
  cause_code: string | null;
  cause_class: CauseClass | null;
  /** Of the last attempt. */
  worker: string | null;
  attempts: number | null;
  /** Of the last attempt. */
  started_at: string | null;
  ended_at: string;
  queued_ms: number | null;
  setup_ms: number | null;
  run_ms: number | null;
  collect_ms: number | null;
  /** Of all attempts together, in and out. */
  tokens: number | null;
  /** The same by kind; null also of what ended before rows told it. */
  usage: Usage | null;
  tool_calls: number | null;
  /** Of the last attempt, by what became of them. */
  servers: Record<ExplainedServer["state"], number> | null;
  /** Only of a rollout with a resources server, as it was scored when it ended; null = it was not. */
  reward?: number | null;
  /** Only of what cannot be run again from what Redis has. */
  retryable?: false;
}

const MAX_TASK = 64;
const MAX_NAME = 40;

/** Pure. */
export function rowOf(result: ActivationResult, { retryable }: { retryable: boolean }): RunRow {
  const { generation, status, task_id, failure, cause_class, attempts, timing, usage, observations, ended_at, rollout, reward } = result;
  const last = attempts.at(-1);
  const servers = { granted: 0, skipped: 0, unavailable: 0, unknown: 0 };
  if (last !== undefined) for (const { state } of serversOf(last)) servers[state] += 1;
  return {
    generation,
    status,
    task: taskName(task_id),
    failure_kind: failure?.failure_kind ?? null,
    cause_code: failure === null ? null : shortened(failure.cause_code, MAX_NAME),
    cause_class,
    worker: result.worker === null ? null : shortened(result.worker.id, MAX_NAME),
    attempts: attempts.length,
    started_at: last?.started_at ?? null,
    ended_at,
    queued_ms: rounded(timing?.queued_ms),
    setup_ms: rounded(timing?.setup_ms),
    run_ms: rounded(timing?.run_ms),
    collect_ms: rounded(timing?.collect_ms),
    tokens: usage?.total_tokens ?? null,
    usage,
    tool_calls: observations.records.filter(({ kind }) => kind === "tool_call").length,
    servers,
    ...(rollout === undefined ? {} : { reward: reward ?? null }),
    ...(retryable ? {} : { retryable }),
  };
}

/** As it lies in Redis: a list without names, which would be half of it, for a run may have 100,000 rows. Pure. */
export function keptRow({ usage, servers, reward, retryable, ...row }: RunRow): string {
  const kinds = usage === null ? null : COUNTERS.map((counter) => usage[counter] ?? null);
  const states = servers === null ? null : STATES.map((state) => servers[state]);
  // What is rare comes last, and is left out where it can be; "" = no reward.
  const rare = retryable === false ? [reward === undefined ? "" : reward, retryable] : reward === undefined ? [] : [reward];
  return JSON.stringify([...FIELDS.map((field) => row[field]), states, kinds, ...rare]);
}

/** The inverse of {@link keptRow}; also of the form with names, in which earlier versions kept them. Pure. */
export function readRow(text: string): RunRow {
  const kept = JSON.parse(text) as unknown[] | (Omit<RunRow, "usage"> & { kinds?: Kinds });
  if (!Array.isArray(kept)) {
    const { kinds = null, ...row } = kept;
    return { ...row, usage: usageOf(kinds) };
  }
  const row = Object.fromEntries(FIELDS.map((field, at) => [field, kept[at]])) as Pick<RunRow, (typeof FIELDS)[number]>;
  const [states, kinds, reward = "", retryable] = kept.slice(FIELDS.length) as [
    number[] | null,
    Kinds | null,
    (number | null | "")?,
    false?,
  ];
  const servers = states === null ? null : (Object.fromEntries(STATES.map((state, at) => [state, states[at]])) as RunRow["servers"]);
  return {
    ...row,
    usage: usageOf(kinds),
    servers,
    ...(reward === "" ? {} : { reward }),
    ...(retryable === undefined ? {} : { retryable }),
  };
}

type Kinds = (number | null)[];

function usageOf(kinds: Kinds | null): Usage | null {
  return kinds === null ? null : (Object.fromEntries(COUNTERS.map((counter, at) => [counter, kinds[at] ?? null])) as Usage);
}

// All three in this order for as long as rows are kept.
const FIELDS = [
  "generation",
  "status",
  "task",
  "failure_kind",
  "cause_code",
  "cause_class",
  "worker",
  "attempts",
  "started_at",
  "ended_at",
  "queued_ms",
  "setup_ms",
  "run_ms",
  "collect_ms",
  "tokens",
  "tool_calls",
] as const satisfies (keyof RunRow)[];
const STATES = ["granted", "skipped", "unavailable", "unknown"] as const satisfies ExplainedServer["state"][];
const COUNTERS = [
  "input_tokens",
  "output_tokens",
  "total_tokens",
  "cached_input_tokens",
  "reasoning_output_tokens",
  "cache_write_input_tokens",
] as const satisfies (keyof Usage)[];

/** Of an end that was recorded before rows were kept. Pure. */
export function bareRow({ generation, status, ended_at }: Pick<RunRow, "generation" | "status" | "ended_at">): RunRow {
  return {
    generation,
    status,
    task: null,
    failure_kind: null,
    cause_code: null,
    cause_class: null,
    worker: null,
    attempts: null,
    started_at: null,
    ended_at,
    queued_ms: null,
    setup_ms: null,
    run_ms: null,
    collect_ms: null,
    tokens: null,
    usage: null,
    tool_calls: null,
    servers: null,
  };
}

// Whoever records an end once more, late, must not bring back the row of a generation that was queued again since.
const KEEP = script(`
local latest = redis.call('HGET', KEYS[1], 'generation')
if latest and tonumber(latest) > tonumber(ARGV[2]) then return 0 end
return redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
`);

/** Keeps the row of an end; doing it twice keeps it once. It goes with its run's keys. */
export async function keepRow({ redis }: Queues, result: ActivationResult, more: { retryable: boolean }): Promise<void> {
  const { activation_id, run_id, generation } = result;
  const row = keptRow(rowOf(result, more));
  await runScript(redis, KEEP, [keys.ledger(activation_id), keys.rows(run_id)], [activation_id, generation, row]);
}

/** Pure. */
export function taskName({ taskset, task_id }: TaskId): string {
  return shortened(`${taskset}/${task_id}`, MAX_TASK);
}

function rounded(ms: number | null | undefined): number | null {
  return ms == null ? null : Math.round(ms);
}
