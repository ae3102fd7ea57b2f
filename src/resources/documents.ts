// SPDX-License-Identifier: Apache-2.0
import type { ArtifactStore } from "../artifacts/types.ts";
import type { Failure } from "../contract/failure.ts";
import type { ActivationResult, RolloutFacts } from "../contract/result.ts";
import { usageOfAttempts } from "../contract/usage.ts";
import type { Protocol } from "./server.ts";
import type { Verdict } from "./verification.ts";
import type { VerifyAnswer } from "./wire.ts";

// What the store keeps of a rollout beside the result of its last activation, whose generation names it. Created, never changed.

/** The end of a rollout: with it, it is over. */
export interface RolloutEnd {
  schema: "rollcall.rollout/1";
  protocol: Protocol;
  resources_session_id: string;
  row_sha256: string;
  counted: number;
  verification_failure: Failure | null;
  cleanup_error: string | null;
  ended_at: string;
}

/** What a verifier said; the first one, or one that was asked for again later. */
export interface Verification extends Verdict {
  schema: "rollcall.verification/1";
  verified_at: string;
  /** Whole. */
  answer: VerifyAnswer;
}

const endName = (generation: number): string => `rollout.g${generation}`;
const verificationName = (generation: number, index: number): string => `verification.g${generation}.${index}`;

/** False: it had ended before, and that stands. */
export function putRolloutEnd(store: ArtifactStore, activationId: string, generation: number, end: RolloutEnd): Promise<boolean> {
  return store.putDocument(activationId, endName(generation), JSON.stringify(end));
}

export async function readRolloutEnd(store: ArtifactStore, activationId: string, generation: number): Promise<RolloutEnd | null> {
  const kept = await store.readDocument(activationId, endName(generation));
  return kept === null ? null : (jsonOf(kept.text) as RolloutEnd | null);
}

/** The `index`th, counted from 0. False: there is one already. */
export function putVerification(
  store: ArtifactStore,
  of: Pick<ActivationResult, "activation_id" | "generation">,
  index: number,
  verification: Verification,
): Promise<boolean> {
  return store.putDocument(of.activation_id, verificationName(of.generation, index), JSON.stringify(verification));
}

export async function hasVerification(store: ArtifactStore, activationId: string, generation: number): Promise<boolean> {
  return (await store.readDocument(activationId, verificationName(generation, 0))) !== null;
}

/** The newest one, and how many there are. */
export async function lastVerification(
  store: ArtifactStore,
  activationId: string,
  generation: number,
): Promise<{ count: number; last: Verification | null; uri: string | null }> {
  let [last, uri]: [Verification | null, string | null] = [null, null];
  for (let count = 0; ; count++) {
    const kept = await store.readDocument(activationId, verificationName(generation, count));
    if (kept === null) return { count, last, uri };
    const verification = jsonOf(kept.text) as Verification | null;
    if (verification !== null) [last, uri] = [verification, kept.uri];
  }
}

/** null: it is torn, and as good as not there. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

/** The result of a rollout that is over: that of its last activation, with all attempts, the reward and what was verified. null: it is not over. */
export async function readRolloutResult(store: ArtifactStore, activationId: string): Promise<ActivationResult | null> {
  const result = await store.readCommit(activationId);
  return result === null ? null : asRolloutResult(store, result);
}

/** The same of a committed result; null: it is not the end of a rollout with a resources server. */
export async function asRolloutResult(store: ArtifactStore, result: ActivationResult): Promise<ActivationResult | null> {
  const activationId = result.activation_id;
  const end = await readRolloutEnd(store, activationId, result.generation);
  if (end === null) return null;
  const { count, last } = await lastVerification(store, activationId, result.generation);
  const saved = await store.readAttempts(activationId);
  const known = new Set(result.attempts.map(({ attempt }) => attempt));
  const attempts = [...result.attempts, ...saved.filter(({ attempt }) => !known.has(attempt))].sort((a, b) => a.attempt - b.attempt);
  const rollout: RolloutFacts = {
    protocol: end.protocol,
    resources_session_id: end.resources_session_id,
    row_sha256: end.row_sha256,
    verified: last !== null,
    verifications: count,
    verification_cut: last?.cut ?? false,
    verification_failure: last === null ? end.verification_failure : null,
    cleanup_error: end.cleanup_error,
  };
  const usage = attempts.length > known.size ? (usageOfAttempts(attempts) ?? result.usage) : result.usage;
  return { ...result, attempts, usage, ...(last === null ? {} : { reward: last.reward, verification: last.fields }), rollout };
}
