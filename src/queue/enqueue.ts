// SPDX-License-Identifier: Apache-2.0
import { contentRecord, differingFields } from "../activation/content.ts";
import { sealActivation, sealedWith, type SealedActivation, type SealedSecret } from "../activation/seal.ts";
import type { SecretKeys } from "../activation/secret-keys.ts";
import { secretSlots } from "../activation/secret-slots.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { activationJobId } from "../contract/identity.ts";
import { RollcallError } from "../errors.ts";
import { differsFromEnded } from "./ended-content.ts";
import { activationFlow, tracedFlow, type ActivationJobData, type FinalJobData, type NextStep } from "./jobs.ts";
import { ACTIVATIONS, FINAL, finalJobId, keys as names } from "./names.ts";
import { missingIn, needsOf, needsText } from "./needs.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { runScript, script } from "./script.ts";
import { liveWorkers, type WorkerFacts } from "./worker-lease.ts";

/** Most activations in one transaction: Redis serves nobody else meanwhile. */
const BATCH = 100;

interface EnqueueOptions {
  keys: SecretKeys;
  /** Where ends are: what the queue has forgotten is compared with what its id ended with there. Absent: only the queue is asked. */
  store?: Pick<ArtifactStore, "putDocument" | "readDocument">;
  generation?: number;
  singleAttempt?: boolean;
  /** Of the one activation that is given: who goes on when its end is recorded. */
  nextStep?: NextStep;
}

export interface EnqueueAnswer {
  activation_id: string;
  /** joined: it is there with the same content, whatever the values of its secrets. ended: it has ended. conflict: it is there with other content. */
  outcome: "added" | "joined" | "conflict" | "ended";
  /** Of a conflict: the fields that differ, when they can be told. */
  fields?: readonly string[];
  /** Of one that was added: what no live worker has, e.g. "codex_version 9.9.9". Absent where one can run it, or none lives. */
  no_worker_for?: string;
}

/**
 * Seals and adds activations; in Redis when it resolves. The activation's job and its parent are added in one transaction
 * and never replaced, so a producer that was killed may simply add everything again; only the values of secrets are renewed, for whoever
 * joins may have new ones. A conflict changes nothing.
 * `singleAttempt`: each may begin one attempt, whatever becomes of it; the producer makes others. Throws RollcallError "activation_too_large" before anything of the batch is added.
 */
export async function enqueueActivations(
  queues: Queues,
  activations: readonly SessionActivation[],
  options: EnqueueOptions,
): Promise<EnqueueAnswer[]> {
  const answers: EnqueueAnswer[] = [];
  for (const batch of batches(activations)) {
    answers.push(...(await enqueueBatch(queues, batch, options)));
  }
  return answers;
}

/** What {@link enqueueActivations} would answer now, without adding anything. Another producer may come in between. */
export async function compareActivations(
  queues: Queues,
  activations: readonly SessionActivation[],
  options: Pick<EnqueueOptions, "keys" | "store">,
): Promise<EnqueueAnswer[]> {
  const answers: EnqueueAnswer[] = [];
  for (const batch of batches(activations)) {
    const candidates = candidatesOf(queues, batch, options);
    const now = await standing(
      queues,
      candidates.map(({ jobId }) => jobId),
    );
    const forgotten = await forgottenEnds(options, candidates, now);
    answers.push(...(await answersFor(queues, candidates, { before: now, after: now, forgotten, workers: [] })));
  }
  return answers;
}

/** Runs of at most {@link BATCH} with no id twice in one: the second one must see the first. */
function* batches(activations: readonly SessionActivation[]): Generator<SessionActivation[]> {
  let batch = new Map<string, SessionActivation>();
  for (const activation of activations) {
    if (batch.size === BATCH || batch.has(activation.activation_id)) {
      yield [...batch.values()];
      batch = new Map();
    }
    batch.set(activation.activation_id, activation);
  }
  if (batch.size > 0) yield [...batch.values()];
}

async function enqueueBatch(queues: Queues, batch: readonly SessionActivation[], options: EnqueueOptions): Promise<EnqueueAnswer[]> {
  const { keys, generation = 0 } = options;
  const candidates = candidatesOf(queues, batch, options);
  const jobIds = candidates.map(({ jobId }) => jobId);
  const before = await standing(queues, jobIds);
  const forgotten = await forgottenEnds(options, candidates, before);
  const missing = candidates.filter(
    ({ activation }, index) => !before[index]!.exists && (forgotten.get(activation.activation_id) ?? []).length === 0,
  );
  await announce(queues, missing, generation);
  if (missing.length > 0) await addAll(queues, missing);

  const workers = missing.length > 0 ? await liveWorkers(queues) : [];
  // Looked at again: another producer may have come first with other content.
  const after = missing.length > 0 ? await standing(queues, jobIds) : before;
  const answers = await answersFor(queues, candidates, { before, after, forgotten, workers });
  for (const [index, { outcome }] of answers.entries()) if (outcome === "joined") await renewSecrets(queues, keys, candidates[index]!);
  return answers;
}

/** By id, of those that the queue does not know and the store does: the fields that differ from what ended there. */
async function forgottenEnds(
  { store, generation = 0 }: EnqueueOptions,
  candidates: readonly Candidate[],
  before: readonly Standing[],
): Promise<Map<string, string[]>> {
  const ends = new Map<string, string[]>();
  if (store === undefined || generation > 0) return ends; // a new generation may have new content
  await Promise.all(
    candidates.map(async ({ activation: { activation_id }, sealed, digest }, index) => {
      const fields = before[index]!.exists ? null : await differsFromEnded(store, activation_id, contentRecord(digest, sealed));
      if (fields !== null) ends.set(activation_id, fields);
    }),
  );
  return ends;
}

type Candidate = ReturnType<typeof candidatesOf>[number];

/** Each has a span of its own, in the trace that its producer named or in one of its own: what becomes of it hangs on that. */
async function addAll({ flows, tracing }: Queues, missing: readonly Candidate[]): Promise<void> {
  const spans = missing.map(({ activation: { activation_id, run_id, traceparent } }) =>
    tracing.begin("enqueue activation", {
      kind: "producer",
      parent: traceparent,
      attributes: { "rollcall.activation_id": activation_id, "rollcall.run_id": run_id },
    }),
  );
  try {
    await flows.addBulk(
      missing.map(({ flow, activation }, index) => tracedFlow(flow, spans[index]!.traceparent ?? activation.traceparent)),
    );
  } catch (error) {
    for (const span of spans) span.fail("enqueue_failed");
    throw error;
  } finally {
    for (const span of spans) span.end();
  }
}

function candidatesOf(
  queues: Queues,
  batch: readonly SessionActivation[],
  { keys, generation = 0, singleAttempt = false, nextStep }: EnqueueOptions,
) {
  const enqueuedAt = new Date().toISOString();
  return batch.map((activation) => {
    const sealed = sealActivation(activation, keys);
    const flow = activationFlow(activation, sealed, {
      generation,
      enqueuedAt,
      settings: queues.settings,
      singleAttempt,
      ...(nextStep === undefined ? {} : { nextStep }),
    });
    requireSize(flow, queues.settings.max_job_bytes);
    return { activation, sealed, flow, jobId: activationJobId(activation.activation_id, generation), digest: flow.data.content_digest };
  });
}

function answersFor(
  queues: Queues,
  candidates: readonly Candidate[],
  {
    before,
    after,
    forgotten,
    workers,
  }: {
    before: readonly Standing[];
    after: readonly Standing[];
    forgotten: ReadonlyMap<string, string[]>;
    workers: readonly WorkerFacts[];
  },
): Promise<EnqueueAnswer[]> {
  return Promise.all(
    candidates.map(async ({ activation, sealed, digest, jobId }, index): Promise<EnqueueAnswer> => {
      const { activation_id } = activation;
      const { ended, digest: there } = after[index]!;
      const differing = forgotten.get(activation_id);
      if (differing !== undefined && differing.length > 0) return { activation_id, outcome: "conflict", fields: differing };
      if (there !== null && there !== digest) {
        const fields = await conflictingFields(queues, activation, jobId);
        if (fields !== null) return { activation_id, outcome: "conflict", fields };
      }
      if (differing !== undefined) return { activation_id, outcome: "ended" }; // its job tells the end anew, and runs nothing
      if (!before[index]!.exists) {
        const lacking = workers.length === 0 ? null : missingIn(workers, needsOf(sealed));
        return { activation_id, outcome: "added", ...(lacking === null ? {} : { no_worker_for: needsText(lacking) }) };
      }
      return { activation_id, outcome: ended ? "ended" : "joined" };
    }),
  );
}

interface Standing {
  /** False: adding the flow makes it, or completes what is missing of it. */
  exists: boolean;
  ended: boolean;
  /** null: cannot be told any more. */
  digest: string | null;
}

async function standing(queues: Queues, jobIds: readonly string[]): Promise<Standing[]> {
  const replies = await inPipeline(queues.redis, (pipeline) => {
    for (const jobId of jobIds) {
      pipeline.hmget(names.job(FINAL, finalJobId(jobId)), "data", "finishedOn");
      pipeline.hget(names.job(ACTIVATIONS, jobId), "finishedOn");
    }
  });
  return jobIds.map((_, index) => {
    const [finalData, finalEnded] = replies[2 * index] as (string | null)[];
    const childEnded = replies[2 * index + 1] as string | null;
    const digest = finalData == null ? null : (JSON.parse(finalData) as FinalJobData).content_digest;
    // A parent without its job is about to end: it is told like any other end, and a job added now would tell nobody.
    const ended = finalEnded != null || (finalData == null && childEnded != null);
    return { exists: finalData != null || childEnded != null, ended, digest };
  });
}

/** The run and the ledger know of the jobs before a worker can. */
async function announce(
  queues: Queues,
  missing: readonly { activation: SessionActivation; jobId: string }[],
  generation: number,
): Promise<void> {
  await inPipeline(queues.redis, (pipeline) => {
    for (const { activation, jobId } of missing) {
      const { activation_id, run_id } = activation;
      pipeline.sadd(names.pending(run_id), jobId);
      for (const name of [names.pending, names.statuses, names.causes, names.rows, names.gate, names.ended, names.openings])
        pipeline.persist(name(run_id));
      pipeline.hset(names.ledger(activation_id), "generation", generation);
      pipeline.persist(names.ledger(activation_id));
      for (const name of [names.statuses, names.causes, names.rows]) pipeline.hdel(name(run_id), activation_id);
      if (generation === 0) continue;
      // What the generation before left: its progress, and an attempt of a lost worker, which is none of this one's.
      pipeline.del(names.progress(activation_id));
      pipeline.hdel(names.ledger(activation_id), "open", "claim");
    }
    for (const runId of new Set(missing.map(({ activation }) => activation.run_id))) pipeline.zadd(names.runs, Date.now(), runId);
  });
}

/** null: nothing that differs can be found, e.g. after an upgrade of ours. */
async function conflictingFields(queues: Queues, activation: SessionActivation, jobId: string): Promise<string[] | null> {
  const text = await queues.redis.hget(names.job(ACTIVATIONS, jobId), "data");
  if (text === null) return [];
  const fields = differingFields((JSON.parse(text) as ActivationJobData).activation, activation);
  return fields.length === 0 ? null : fields;
}

/** A job that has not ended gets the secrets that its producer has now; everything else of it is the same. */
async function renewSecrets(queues: Queues, keys: SecretKeys, { activation, sealed, jobId }: Candidate): Promise<void> {
  if (sealedWith(sealed).length === 0) return;
  const key = names.job(ACTIVATIONS, jobId);
  const text = await queues.redis.hget(key, "data");
  if (text === null) return;
  const data = JSON.parse(text) as ActivationJobData;
  const { traceparent } = data.activation;
  const asThere = sealActivation(activation, keys, sealedWith(data.activation)[0]); // digests of one key compare
  if (secretsOf(asThere) === secretsOf(data.activation)) return;
  const renewed = { ...data, activation: { ...sealed, ...(traceparent === undefined ? {} : { traceparent }) } };
  await runScript(queues.redis, REPLACE_DATA, [key], [text, JSON.stringify(renewed)]);
}

function secretsOf(sealed: SealedActivation): string {
  return JSON.stringify(secretSlots(sealed).map(({ path, holder, key }) => [path, (holder[key] as SealedSecret).digest]));
}

/** Not after its end, when the secrets are deleted, and nothing that came in between is undone. */
const REPLACE_DATA = script(`
if redis.call('HGET', KEYS[1], 'data') == ARGV[1] and redis.call('HEXISTS', KEYS[1], 'finishedOn') == 0 then
  redis.call('HSET', KEYS[1], 'data', ARGV[2])
end
`);

/** Throws RollcallError "activation_too_large" for one that is put into the queue later, so that its producer hears of it now. Pure. */
export function requireQueueable({ settings }: Pick<Queues, "settings">, activation: SessionActivation, sealed: SealedActivation): void {
  requireSize(activationFlow(activation, sealed, { generation: 0, enqueuedAt: "", settings }), settings.max_job_bytes);
}

function requireSize(flow: ReturnType<typeof activationFlow>, limit: number): void {
  const data = flow.children![0]!.data as ActivationJobData;
  const bytes = bytesOf(data);
  if (bytes <= limit) return;
  const parts = Object.entries(data.activation).map(([name, value]) => ({ name, bytes: bytesOf(value) }));
  const largest = parts.sort((one, other) => other.bytes - one.bytes).slice(0, 3);
  throw new RollcallError(
    "activation_too_large",
    `${flow.data.activation_id} is ${bytes} bytes as JSON (${largest.map((part) => `${part.name} ${part.bytes}`).join(", ")}); ` +
      `at most ${limit} fit into the queue. Place large files by URL or artifact`,
  );
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? "", "utf8");
}
