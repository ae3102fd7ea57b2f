// SPDX-License-Identifier: Apache-2.0
import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";

/** One logical run of one task. Its mapping to the capture key is 1:1, hence no id may end like a key's suffix. */
export const rolloutIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "expected letters, digits, dot, underscore or hyphen, beginning with a letter or digit")
  .refine((id) => !/-a[1-9][0-9]*$/.test(id), "must not end in -a<N>: that suffix names attempts");

export const episodeIdSchema = z.strictObject({
  rollout_id: rolloutIdSchema,
  /** Attempts of the caller's own; ours go on counting from here. */
  attempt: z.int().min(0).default(0),
});
export type EpisodeId = z.infer<typeof episodeIdSchema>;

export const taskIdSchema = z.strictObject({ taskset: z.string().min(1), task_id: z.string().min(1) });
export type TaskId = z.infer<typeof taskIdSchema>;

/** What BullMQ 6.7 calls its keys; a job of that id would lie in the same place (redis-queue-backend.js, queue-keys.js). */
const QUEUE_NAMES = new Set(
  "active wait waiting-children paused completed failed delayed prioritized stalled stalled-check repeat limiter meta events pc marker de id priority".split(
    " ",
  ),
);

export const activationIdSchema = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_.-]{0,199}$/, "expected a letter, then up to 199 letters, digits, underscores, dots or hyphens")
  .refine((id) => !QUEUE_NAMES.has(id), "the queue calls a key of its own so: choose another id");

/** `rollout_id`, or `<rollout_id>-a<N>` for attempt N > 0: names the model route and the observations. */
export function captureKey(episode: EpisodeId): string {
  return episode.attempt === 0 ? episode.rollout_id : `${episode.rollout_id}-a${episode.attempt}`;
}

/** The inverse of {@link captureKey}. */
export function parseCaptureKey(key: string): EpisodeId {
  const suffix = /^(.*)-a([1-9][0-9]*)$/.exec(key);
  return suffix === null ? { rollout_id: key, attempt: 0 } : { rollout_id: suffix[1]!, attempt: Number(suffix[2]) };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The one rule that turns any task id into a name for ids, directories and artifacts: the id itself where it is safe,
 * else its cleaned beginning and 12 hex digits of its sha256. Distinct ids give distinct names.
 */
export function safeName(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/.test(id) && !/-a[0-9]+$/.test(id) && !looksDerived(id)) return id;
  const cleaned = id
    .normalize("NFKD")
    .replace(/[^A-Za-z0-9._-]+/g, "_")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 60);
  const derived = `${cleaned === "" ? "id" : cleaned}-${nameHash(id)}`;
  return UUID.test(derived) ? `x${derived}` : derived; // a UUID is its own name, so no derived name may be one
}

/** 12 hex digits, never "a" and digits only: `-a<digits>` would read as an attempt's suffix. */
function nameHash(id: string): string {
  const hash = createHash("sha256").update(id, "utf8").digest("hex");
  const first = hash.slice(0, 12);
  return /^a[0-9]+$/.test(first) ? `f${hash.slice(13, 24)}` : first;
}

/** A plain id that ends like a derived name could equal another id's derived name; it gets a hash of its own. */
function looksDerived(id: string): boolean {
  return /-[0-9a-f]{12}$/.test(id) && !UUID.test(id);
}

/** `act-<run_id>-<safe name>`, kept within the 200 characters an activation id may have. */
export function deriveActivationId(runId: string, taskId: string): string {
  return `act-${safeName(runId)}-${safeName(taskId)}`;
}

/** A new run id: UTC time to the second and 8 hex digits, e.g. "20261129-161912-1a2b3c4d". */
export function newRunId(now: Date = new Date()): string {
  const stamp = now.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  const id = `${stamp}-${randomBytes(4).toString("hex")}`;
  return safeName(id) === id ? id : newRunId(now); // one in 430 would end like an attempt, -a1234567, or -a0123456
}

/** BullMQ job id of one generation of an activation: `<id>`, `<id>.g1`, ... A retry of an ended one makes the next. */
export function activationJobId(activationId: string, generation: number): string {
  return generation === 0 ? activationId : `${activationId}.g${generation}`;
}
