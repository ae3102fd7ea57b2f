// SPDX-License-Identifier: Apache-2.0
import { MAX_REASON_CHARACTERS, type Failure } from "../contract/failure.ts";
import type { ActivationResult } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { retryPauseMs } from "../queue/disposal.ts";
import { redactValue, type SecretSet } from "../redact/index.ts";
import type { Call } from "./call.ts";
import { CallFailure } from "./call-failure.ts";
import { callFailed, removedFromStore, waitOf, whileUnreachable } from "./decide.ts";
import { hasVerification, putVerification, type Verification } from "./documents.ts";
import type { RolloutRecord } from "./record.ts";
import { responseFor } from "./response-for.ts";
import { readRow } from "./rows.ts";
import type { ResourcesServer } from "./server.ts";
import { draftOf, openSession, rolloutSecrets, type Move, type Step, type StepPorts } from "./step.ts";
import { verdictOf } from "./verification.ts";
import { verifyAnswerSchema, verifyBody, type Row } from "./wire.ts";

/** Has the resources server score what the session left. What it says is kept in the store before anything else is done. */
export async function verifyStep(step: Step): Promise<Move> {
  const { record, store, keys, limits, queues, log } = step;
  const { activation_id, generation } = record;
  const early = record.not_before - Date.now();
  if (early > 0) return { kind: "wait", ms: early };
  const over: RolloutRecord = { ...record, state: "close", next: "end", tries: 0, unreachable_since: null };
  if (await hasVerification(store, activation_id, generation)) return { kind: "go", record: over };

  const session = openSession(keys, record);
  try {
    const committed = await store.readCommitted(activation_id, generation);
    if (committed === null)
      throw new RollcallError("result_missing", `the store has no result of ${activation_id}, generation ${generation}`);
    const verification = await askVerifier(step, {
      server: record.server,
      row: await readRow(store, record.row_sha256),
      result: JSON.parse(committed.text) as ActivationResult,
      cookies: session.cookies,
      secrets: rolloutSecrets(draftOf(step), session),
      signal: step.signal,
    });
    await putVerification(store, record, 0, verification);
    return { kind: "go", record: over };
  } catch (error) {
    const removed = removedFromStore(error, "verification");
    if (removed !== null) return { kind: "go", record: { ...over, verification_failure: removed } };
    if (!(error instanceof CallFailure)) throw error;
    const { fault } = error;
    const waiting = whileUnreachable(record, fault, limits, Date.now());
    if (waiting !== null) return { kind: "wait", ...waiting };
    const failure = callFailed(fault, "verification");
    log.warn({ activation_id, tries: record.tries + 1, reason: failure.failure_reason }, "a verification failed");
    if (failure.terminal || record.tries + 1 >= limits.verify_tries)
      return { kind: "go", record: { ...over, verification_failure: tried(failure, record.tries + 1) } };
    const ms = Math.max(waitOf(fault) ?? 0, retryPauseMs(queues.settings, record.tries + 1, Math.random()));
    return { kind: "wait", ms, record: { ...record, tries: record.tries + 1, unreachable_since: null } };
  }
}

function tried(failure: Failure, times: number): Failure {
  if (times === 1) return failure;
  const words = `, ${times} times`;
  return { ...failure, failure_reason: failure.failure_reason.slice(0, MAX_REASON_CHARACTERS - words.length) + words };
}

/** One call of /verify. Throws CallFailure. */
export async function askVerifier(
  { caller, limits }: Pick<StepPorts, "caller" | "limits">,
  of: { server: ResourcesServer; row: Row; result: ActivationResult; secrets: SecretSet } & Pick<Call, "cookies" | "signal">,
): Promise<Verification> {
  const { server, row, result, cookies, secrets, signal } = of;
  const { value } = await caller.post({
    url: `${server.url}/verify`,
    body: verifyBody(server, row, responseFor(server.protocol, result)),
    cookies,
    timeoutMs: limits.verify_timeout_ms,
    maxAnswerBytes: limits.max_answer_bytes,
    secrets,
    signal,
  });
  const parsed = verifyAnswerSchema.safeParse(value);
  if (!parsed.success) throw new CallFailure({ kind: "protocol", what: "its answer holds no reward that is a number" });
  const answer = redactValue(secrets, parsed.data);
  return { schema: "rollcall.verification/1", verified_at: new Date().toISOString(), ...verdictOf(answer, row), answer };
}
