// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import type { CancelMark } from "../activation/ports.ts";
import type { SealedActivation, SealedSecret } from "../activation/seal.ts";
import type { Failure } from "../contract/failure.ts";
import type { TaskId } from "../contract/identity.ts";
import { keys } from "../queue/names.ts";
import { inPipeline } from "../queue/pipeline.ts";
import type { Queues } from "../queue/queues.ts";
import { runScript, script } from "../queue/script.ts";
import type { ResourcesServer } from "./server.ts";

/** What is done next for a rollout. activation: it is queued, or runs. close: of the session that is open. */
type RolloutState = "seed" | "activation" | "verify" | "close" | "ended";

/**
 * One rollout of one task behind a resources server, as Redis keeps it: a few KB. What is large (the row, the response, the
 * verifier's answer) is in the artifact store; what is secret is sealed.
 */
export interface RolloutRecord {
  activation_id: string;
  run_id: string;
  task_id: TaskId;
  rollout_id: string;
  /** In the names of this record's jobs: those of an earlier record of the same rollout are others. */
  nonce: string;
  server: ResourcesServer;
  /** Of the activation as it was given, and of its row: whether another is the same. */
  content_digest: string;
  /** Where the row is in the store's inputs. */
  row_sha256: string;
  state: RolloutState;
  /** Number of the attempt that the state is about; names its capture key. */
  attempt: number;
  /** Of the activation of this attempt. */
  generation: number;
  /** A session may be open at the server: it was noted before the seed was sent. */
  session_open: boolean;
  /** From the answer to the seed: JSON of {@link SessionSecrets}. */
  session: SealedSecret | null;
  /** Whether the activation of this attempt was put into the queue. */
  queued: boolean;
  /** Failed attempts that count, and those that do not: stopped workers, busy servers. */
  counted: number;
  uncounted: number;
  /** ms since 1970: not before this. */
  not_before: number;
  /** Since when (ms) the server has been out of reach. */
  unreachable_since: number | null;
  /** Tries of the verification, or of the close, that failed. */
  tries: number;
  /** What comes after the close. null: not decided. */
  next: "again" | "end" | null;
  /** Why this attempt failed. */
  failure: Failure | null;
  /** Why there is no verification. */
  verification_failure: Failure | null;
  /** Somebody asked for its end. */
  cancel: CancelMark | null;
  /** Why a session could not be closed. */
  cleanup_error: string | null;
}

export interface KeptRollout {
  record: RolloutRecord;
  /** The activation without what the seed gives it; null once the rollout has ended. */
  draft: SealedActivation | null;
  revision: string;
}

/** Where a rollout that has not ended is, for people. waiting: for a place at the server, or for another try. */
export const PHASES = ["waiting", "seeding", "activation", "verifying", "closing"] as const;
export type Phase = (typeof PHASES)[number];

export function phaseOf({ state, session_open }: Pick<RolloutRecord, "state" | "session_open">): Phase | "ended" {
  switch (state) {
    case "seed":
      return session_open ? "seeding" : "waiting";
    case "activation":
      return "activation";
    case "verify":
      return "verifying";
    case "close":
      return "closing";
    case "ended":
      return "ended";
    default:
      return state satisfies never;
  }
}

// A record changes only if it is still what the change was decided from, else it is decided again: whoever stood still
// meanwhile writes over nothing.
const CHANGE = script(`
if (redis.call('HGET', KEYS[1], 'revision') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'record', ARGV[3])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'draft', ARGV[4]) end
local before, after = ARGV[5], ARGV[6]
if before ~= 'ended' then redis.call('HINCRBY', KEYS[3], before, -1) end
if after == 'ended' then
  redis.call('HDEL', KEYS[1], 'draft')
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  redis.call('SREM', KEYS[2], ARGV[8])
else
  redis.call('HINCRBY', KEYS[3], after, 1)
  redis.call('PERSIST', KEYS[1])
  redis.call('SADD', KEYS[2], ARGV[8])
end
return 1
`);

export async function readRollout({ redis }: Pick<Queues, "redis">, activationId: string): Promise<KeptRollout | null> {
  const [revision, record, draft] = await redis.hmget(keys.rollout(activationId), "revision", "record", "draft");
  if (revision == null || record == null) return null;
  return { revision, record: JSON.parse(record) as RolloutRecord, draft: draft == null ? null : (JSON.parse(draft) as SealedActivation) };
}

/** Of those that have one, by their activation. Meant for up to some hundred. */
export async function readRecords({ redis }: Pick<Queues, "redis">, activationIds: readonly string[]): Promise<Map<string, RolloutRecord>> {
  if (activationIds.length === 0) return new Map();
  const texts = (await inPipeline(redis, (pipeline) => {
    for (const id of activationIds) pipeline.hget(keys.rollout(id), "record");
  })) as (string | null)[];
  return new Map(
    activationIds.flatMap((id, index) => (texts[index] == null ? [] : [[id, JSON.parse(texts[index]) as RolloutRecord] as const])),
  );
}

/** Writes a new record over one that has ended, or where there is none. False: somebody else did. */
export function createRollout(
  queues: Queues,
  before: KeptRollout | null,
  record: RolloutRecord,
  draft: SealedActivation,
): Promise<boolean> {
  return write(queues, before, record, JSON.stringify(draft));
}

/** False: it has changed since it was read, and nothing was written. */
export function changeRollout(queues: Queues, before: KeptRollout, record: RolloutRecord): Promise<boolean> {
  return write(queues, before, record, "");
}

async function write({ redis, settings }: Queues, before: KeptRollout | null, record: RolloutRecord, draft: string): Promise<boolean> {
  const { activation_id, run_id } = record;
  const names = [keys.rollout(activation_id), keys.rollouts(run_id), keys.phases(run_id)];
  const phases = [before === null ? "ended" : phaseOf(before.record), phaseOf(record)];
  const args = [before?.revision ?? "", randomUUID(), JSON.stringify(record), draft, ...phases, 2 * settings.keep_ended_ms, activation_id];
  return (await runScript(redis, CHANGE, names, args)) === 1;
}

/** How many of a run's rollouts are in each phase; of those that have not ended. */
export async function countPhases({ redis }: Queues, runId: string): Promise<Record<Phase, number>> {
  const counts = await redis.hmget(keys.phases(runId), ...PHASES);
  return Object.fromEntries(PHASES.map((phase, index) => [phase, Math.max(0, Number(counts[index] ?? 0))])) as Record<Phase, number>;
}

/** Of a job of `steps` that wakes this rollout. */
export function stepJobId({ activation_id, nonce }: Pick<RolloutRecord, "activation_id" | "nonce">, what: string): string {
  return `${activation_id}.${nonce}.${what}`;
}

/** The inverse; an id that is none of these stays what it is. Pure. */
export function activationOfStep(jobId: string): string {
  return /^(.+)\.[0-9a-f]{1,16}\.(?:begin|ended-[0-9]{1,9})$/.exec(jobId)?.[1] ?? jobId;
}
