// SPDX-License-Identifier: Apache-2.0
import type { CancelMark } from "../activation/ports.ts";
import { captureKey } from "../contract/identity.ts";
import type { Failure } from "../contract/failure.ts";
import type { Attempt } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { readBudget } from "../queue/budget.ts";
import { retryPauseMs } from "../queue/disposal.ts";
import { failureOf } from "../queue/end-without-run.ts";
import { readPause } from "../queue/pause.ts";
import { CallFailure } from "./call-failure.ts";
import { afterFailure, callFailed, removedFromStore, resourcesFailure, waitOf, whileUnreachable, type AttemptFailure } from "./decide.ts";
import { grantOf } from "./grants.ts";
import { takePlace } from "./places.ts";
import { readRow } from "./rows.ts";
import { draftOf, episodeOf, rolloutSecrets, sealSession, sessionIdOf, type Move, type SessionSecrets, type Step } from "./step.ts";
import { seedAnswerSchema, seedBody } from "./wire.ts";

const HELD_LOOK_MS = 10_000;
/** Against a wake-up that was lost. */
const PLACE_LOOK_MS = 15_000;

/** Opens a session at the resources server, when there is room for one. */
export async function seedStep(step: Step): Promise<Move> {
  const { record, queues, jobId, limits } = step;
  if (record.cancel !== null)
    return { kind: "go", record: { ...record, state: "close", next: "end", tries: 0, failure: cancelledBefore(record.cancel) } };
  const early = record.not_before - Date.now();
  if (early > 0) return { kind: "wait", ms: early };
  if (record.session_open) return seed(step);
  const isHeld = (await readPause(queues, record.run_id)) !== null || (await readBudget(queues, record.run_id)).spent !== null;
  if (isHeld) return { kind: "wait", ms: HELD_LOOK_MS };
  const free = await takePlace(queues, record.server.url, record.activation_id, jobId, limits.max_sessions);
  if (!free) return { kind: "wait", ms: PLACE_LOOK_MS };
  // Noted before the seed is sent: should its answer be lost, the session is still closed.
  return { kind: "go", record: { ...record, session_open: true } };
}

function cancelledBefore(mark: CancelMark): Failure {
  return { ...failureOf({ value: { kind: "cancelled" }, failedReason: null, mark, givenUp: null }), stage: "seed" };
}

async function seed(step: Step): Promise<Move> {
  const { record, keys } = step;
  const startedAt = new Date();
  const seeded = await askForSession(step);
  if ("cookies" in seeded) {
    return { kind: "go", record: { ...record, state: "activation", session: sealSession(keys, record, seeded), unreachable_since: null } };
  }
  if ("wait" in seeded) return seeded.wait;
  await saveAttempt(step, seeded, startedAt);
  const pause = retryPauseMs(step.queues.settings, record.counted + 1, Math.random());
  step.log.warn({ activation_id: record.activation_id, attempt: record.attempt, reason: seeded.failure.failure_reason }, "a seed failed");
  return { kind: "go", record: afterFailure(record, seeded, step.limits, pause, Date.now()) };
}

async function askForSession(step: Step): Promise<SessionSecrets | AttemptFailure | { wait: Move }> {
  const { record, caller, limits, store, signal } = step;
  const { server } = record;
  const names = { session_id: sessionIdOf(record), episode_id: episodeOf(record), task_id: record.task_id };
  try {
    const { value, cookies } = await caller.post({
      url: `${server.url}/seed_session`,
      body: seedBody(server, names, await readRow(store, record.row_sha256)),
      cookies: {},
      timeoutMs: limits.seed_timeout_ms,
      maxAnswerBytes: limits.max_answer_bytes,
      secrets: rolloutSecrets(draftOf(step), { cookies: {}, grant: null }),
      signal,
    });
    return sessionIn(step, value, cookies);
  } catch (error) {
    const removed = removedFromStore(error, "seed");
    if (removed !== null) return { failure: removed, counted: true, waitMs: null };
    if (!(error instanceof CallFailure)) throw error;
    const { fault } = error;
    const waiting = whileUnreachable(record, fault, limits, Date.now());
    if (waiting !== null) return { wait: { kind: "wait", ...waiting } };
    return { failure: callFailed(fault, "seed"), counted: true, waitMs: waitOf(fault) };
  }
}

function sessionIn({ record }: Step, value: unknown, cookies: SessionSecrets["cookies"]): SessionSecrets | AttemptFailure {
  const { server } = record;
  const parsed = seedAnswerSchema.safeParse(value);
  if (!parsed.success) return refusedSeed("resources_seed_failed", "its seed answer is not what the protocol says");
  const answer = parsed.data;
  if (answer.sandbox_access != null) {
    return refusedSeed(
      "resources_sandbox_access",
      "it gave access to a sandbox of its own (sandbox_access), and attaching to one is not there yet: use a server that keeps no sandbox, or gives tools over MCP",
    );
  }
  if (server.protocol === "session" && answer.resources_session_id !== sessionIdOf(record))
    return refusedSeed("resources_seed_failed", "its seed answer names another session than the one that was asked for");
  if (server.protocol === "session" && Object.keys(cookies).length === 0)
    return refusedSeed("resources_seed_failed", "its seed answer set no session cookie");
  if (!server.mcp) return { cookies, grant: null };
  const grant = grantOf(server, answer);
  return typeof grant === "string" ? refusedSeed("resources_metadata_missing", grant) : { cookies, grant };
}

/** What this server would answer again. */
function refusedSeed(cause: Failure["cause_code"], what: string): AttemptFailure {
  const reason = `the resources server's /seed_session: ${what}`;
  return {
    failure: resourcesFailure({ kind: "protocol_violation", cause, stage: "seed", reason, terminal: true, statusCode: 422 }),
    counted: true,
    waitMs: null,
  };
}

/** An attempt without a session has a record like any other. */
async function saveAttempt({ record, store, worker }: Step, { failure, counted }: AttemptFailure, startedAt: Date): Promise<void> {
  const capture_key = captureKey(episodeOf(record));
  const attempt: Attempt = {
    attempt: record.attempt,
    capture_key,
    worker,
    started_at: startedAt.toISOString(),
    ended_at: new Date().toISOString(),
    status: "failed",
    incomplete_cause: null,
    cause_class: "infrastructure",
    charged: counted,
    failure,
    grants: [],
    evidence: null,
    usage: null,
    observations: {
      source: "codex",
      records: [],
      gaps: [{ code: "harness_not_run", invocation_id: capture_key, detail: failure.cause_code }],
    },
  };
  try {
    await store.putAttempt(record.activation_id, attempt);
  } catch (error) {
    // Whoever did this step before was killed after it had written it, at another time of day.
    if (!(error instanceof RollcallError && error.code === "attempt_exists")) throw error;
  }
}
