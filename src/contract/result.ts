// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { failureSchema } from "./failure.ts";
import { activationIdSchema, episodeIdSchema, rolloutIdSchema, taskIdSchema } from "./identity.ts";
import { observationBundleSchema } from "./observation.ts";
import { responseSchema, usageSchema } from "./response.ts";

export const RESULT_SCHEMA = "rollcall.result/1";

/** completed and incomplete are gradable; the others are not. */
export const statusSchema = z.enum(["completed", "incomplete", "failed", "refused", "cancelled"]);
export type Status = z.infer<typeof statusSchema>;

/** Why an incomplete activation stopped where it did. */
const incompleteCauseSchema = z.enum(["wall_clock", "idle", "max_output_tokens", "context_overflow"]);
export type IncompleteCause = z.infer<typeof incompleteCauseSchema>;

const causeClassSchema = z.enum(["infrastructure", "grant", "model_provider", "agent", "limit", "cancelled"]);
export type CauseClass = z.infer<typeof causeClassSchema>;

/** Why the worker ended Codex; null in evidence = it ended by itself. */
const stoppedSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("wall_clock") }),
  z.strictObject({ kind: z.literal("idle") }),
  /** Its turn was over, and it did not exit. */
  z.strictObject({ kind: z.literal("linger") }),
  z.strictObject({ kind: z.literal("cancelled"), mark: z.strictObject({ by: z.string(), at: z.string(), reason: z.string() }) }),
  z.strictObject({ kind: z.literal("shutdown") }),
  z.strictObject({ kind: z.literal("lock_lost") }),
]);

/** Tokens of one model call, or of one thread's calls together. Null: this Codex does not tell that kind. */
const tokensSchema = z.strictObject({
  input_tokens: z.int().min(0),
  cached_input_tokens: z.int().min(0),
  cache_write_input_tokens: z.int().min(0).nullable(),
  output_tokens: z.int().min(0),
  reasoning_output_tokens: z.int().min(0),
});
export type Tokens = z.infer<typeof tokensSchema>;

/** One agent of a session: the root, or one that it spawned. */
const threadSchema = z.strictObject({
  thread_id: z.string(),
  /** null: the root. */
  parent_thread_id: z.string().nullable(),
  /** e.g. "/root/sub_one"; null: the root, or not told. */
  agent_path: z.string().nullable(),
  /** Answered ones. */
  model_calls: z.int().min(0),
  tokens: tokensSchema,
  /** Calls that the model server may have answered and billed, and of which no record tells. */
  open_model_calls: z.int().min(0),
});
export type Thread = z.infer<typeof threadSchema>;

/** One answered model call, from the transcript of its thread. */
const modelCallSchema = z.strictObject({
  thread_id: z.string(),
  /** Of 0.171.0; 0.144.4 does not tell it. */
  response_id: z.string().nullable(),
  /** When its tokens were counted. */
  at: z.iso.datetime().nullable(),
  kind: z.enum(["turn", "compaction"]),
  tokens: tokensSchema,
});
export type ModelCall = z.infer<typeof modelCallSchema>;

/** Facts that the status and class were decided from; with the kept events and stderr they decide the same again. */
const evidenceSchema = z.strictObject({
  turn_started: z.boolean(),
  turn_completed: z.boolean(),
  /** Items and usage show that the model answered at least once; null = cannot be told. */
  model_answered: z.boolean().nullable(),
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  /** The kernel killed Codex, or a process that it started, for memory; null = cannot be told. Earlier records do not say it. */
  oom_killed: z.boolean().nullable().default(null),
  /** The sandbox's own memory limit was reached; false beside oom_killed: the worker or its host ran short of memory. */
  memory_limit_reached: z.boolean().nullable().default(null),
  /** The whole sandbox was killed, which nothing inside can do, and not by the worker; only where that is known. */
  killed_from_outside: z.literal(true).optional(),
  /** Why the sandbox could not start Codex. */
  launch_error: z.string().nullable(),
  stopped: stoppedSchema.nullable(),
  /** Measured, never the configured limit. */
  elapsed_ms: z.number().min(0),
  reconnects: z.int().min(0),
  /** Successful calls by tool name. */
  tools_called: z.record(z.string(), z.int().min(0)),
  required_tools: z.array(z.string()),
  /** Those that no call reached; one that timed out for the model may have been served, and is not among them. */
  required_tools_missing: z.array(z.string()),
  cleanup_error: z.string().nullable(),
  /** The root first; empty where there is no transcript. Earlier records do not say it. */
  threads: z.array(threadSchema).default([]),
  /** All threads' calls in the order of time; the first 500, the gap model_calls_unlisted tells how many more there were. */
  model_calls: z.array(modelCallSchema).default([]),
});
export type Evidence = z.infer<typeof evidenceSchema>;

const timingSchema = z.strictObject({
  queued_ms: z.number().min(0).nullable(),
  setup_ms: z.number().min(0),
  run_ms: z.number().min(0),
  collect_ms: z.number().min(0),
});
export type Timing = z.infer<typeof timingSchema>;

const workerInfoSchema = z.strictObject({
  id: z.string(),
  host: z.string(),
  version: z.string(),
  codex_version: z.string().nullable(),
  sandbox_provider: z.string().nullable(),
});
export type WorkerInfo = z.infer<typeof workerInfoSchema>;

const artifactSchema = z.strictObject({
  /** Relative to the attempt's directory, forward slashes. */
  path: z.string(),
  /** Where it was inside the sandbox; null for evidence the worker made. */
  source: z.string().nullable(),
  kind: z.enum(["evidence", "output", "submission"]),
  bytes: z.int().min(0),
  sha256: z.string(),
  uri: z.string(),
  /** A form of a secret was found in it. */
  quarantined: z.boolean(),
});
export type Artifact = z.infer<typeof artifactSchema>;

/** One physical run of Codex for the activation; attempt.json. */
export const attemptSchema = z.strictObject({
  attempt: z.int().min(0),
  capture_key: z.string(),
  worker: workerInfoSchema,
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
  status: statusSchema,
  incomplete_cause: incompleteCauseSchema.nullable(),
  cause_class: causeClassSchema.nullable(),
  /** False: shutdown, pause, lost lock and the like do not count against max_attempts. */
  charged: z.boolean(),
  failure: failureSchema.nullable(),
  /** What it was given, whether or not it could be used. */
  grants: z.array(z.strictObject({ name: z.string(), required: z.boolean() })),
  /** null when Codex was not launched. */
  evidence: evidenceSchema.nullable(),
  /** Of all threads of this session, however it ended; null = nothing is known of it. Earlier records do not say it. */
  usage: usageSchema.nullable().default(null),
  observations: observationBundleSchema,
});
export type Attempt = z.infer<typeof attemptSchema>;

/**
 * Where a result is whole that was too large for a results queue: the bytes of its result.json. `uri` is `s3://` or `file://`, its
 * path percent-encoded. A later generation leaves them beside it, as result.g<generation>.json.
 */
const resultBodySchema = z.strictObject({
  store_id: z.string(),
  uri: z.string(),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type ResultBody = z.infer<typeof resultBodySchema>;

/** Of a rollout that a resources server seeded and scored: how it went with that server. */
const rolloutSchema = z.strictObject({
  protocol: z.enum(["session", "row"]),
  resources_session_id: z.string(),
  /** Of the row as it was sent; it is among the store's inputs. */
  row_sha256: z.string(),
  /** False: there is no reward. Then verification_failure says why, or the session came to nothing that could be scored. */
  verified: z.boolean(),
  /** How often it was verified; the last one counts, and the store keeps each answer whole. */
  verifications: z.int().min(0),
  /** Large fields of the answer were left out of `verification`. */
  verification_cut: z.boolean(),
  verification_failure: failureSchema.nullable(),
  /** A session that the server did not let go of. */
  cleanup_error: z.string().nullable(),
});
export type RolloutFacts = z.infer<typeof rolloutSchema>;

/** The end of an activation: result.json, a line of results.jsonl, and the job in the results queue. */
export const resultSchema = z.strictObject({
  schema: z.literal(RESULT_SCHEMA),
  activation_id: activationIdSchema,
  run_id: rolloutIdSchema,
  generation: z.int().min(0),
  agent_session_id: z.string().nullable(),
  /** The attempt that produced it. */
  episode_id: episodeIdSchema,
  capture_key: z.string(),
  task_id: taskIdSchema,
  status: statusSchema,
  response: responseSchema.nullable(),
  failure: failureSchema.nullable(),
  incomplete_cause: incompleteCauseSchema.nullable(),
  /** null when completed, unless a required tool was not called. */
  cause_class: causeClassSchema.nullable(),
  /** null when nothing ran. */
  evidence: evidenceSchema.nullable(),
  observations: observationBundleSchema,
  attempts: z.array(attemptSchema),
  artifacts: z.array(artifactSchema),
  /** Of all attempts together: what the activation took. `response.usage` is that of its last session. */
  usage: usageSchema.nullable(),
  timing: timingSchema.nullable(),
  worker: workerInfoSchema.nullable(),
  ended_at: z.iso.datetime(),
  metadata: z.record(z.string(), z.string()),
  /** Only in a results queue: response, evidence, observations, attempts and artifacts are left out here (null or empty), and are there. */
  body: resultBodySchema.optional(),
  /** Only in lines of results.jsonl: the row of another format that asked for it, whole. */
  row: z.record(z.string(), z.unknown()).optional(),
  /**
   * Only where a rollout with a resources server is told of, not in its last activation's own result.json: the reward, absent when there is
   * none, and the verifier's own fields.
   */
  reward: z.number().optional(),
  verification: z.record(z.string(), z.unknown()).optional(),
  rollout: rolloutSchema.optional(),
});
export type ActivationResult = z.infer<typeof resultSchema>;
