// SPDX-License-Identifier: Apache-2.0
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import type { CancelReply, EnqueueReply, RetryReply, StateReply } from "../api/messages.ts";
import type { BudgetReply } from "../api/budget-reply.ts";
import type { BreakerReply } from "../api/routes/breaker.ts";
import type { BudgetBody } from "../api/routes/budget.ts";
import type { AckedResults, AckResults, ClaimedResults, ClaimResults, UnreadResults } from "../api/routes/results.ts";
import type { RefusedRecorded } from "../api/routes/refused.ts";
import type { RunListReply } from "../api/routes/run-list.ts";
import type { ResultLine, RunCancelled, RunPause, RunRetried } from "../api/routes/runs.ts";
import type { Sealed } from "../api/routes/seal.ts";
import type { RunRowReply } from "../api/row-lines.ts";
import type { DeadLetterList, RemovedWebhook, Replayed, SavedWebhook, SetWebhook, WebhookList } from "../api/routes/webhooks.ts";
import type { WorkersReply } from "../api/routes/workers.ts";
import type { Story } from "../api/story.ts";
import type { RunReply } from "../api/run-view.ts";
import type { SessionActivationInput } from "../contract/activation.ts";
import type { RefusedRow } from "../contract/refused.ts";
import type { ActivationResult, Status } from "../contract/result.ts";
import type { BreakerMode } from "../queue/breaker-mode.ts";
import type { Operation } from "./operations.ts";
import { sender, type ClientOptions, type RequestOptions } from "./request.ts";
import { resultLines, runRows, sessionEvents, type ResultsOptions, type RowsOptions, type SessionEvent } from "./streams.ts";

interface Abortable {
  signal?: AbortSignal;
}
interface WithReason extends Abortable {
  reason?: string;
}
export interface EnqueueOptions extends Abortable {
  /** Queue what can be, instead of all or nothing. */
  partial?: boolean;
  /** Run those that have ended once more. */
  again?: boolean;
  /** For activations that name none. */
  run_id?: string;
  /** Makes the run id of those that name none: sent again, they join. */
  idempotency_key?: string;
}

/**
 * The queue API as functions; each resolves with the body of the server's answer. What cannot be reached or is busy is asked
 * again (`retry_seconds`). Rejects with ApiError or RollcallError ("server_unreachable"), or with the signal's reason.
 */
export interface Client {
  /** Up to 1,000. Those without ids need `idempotency_key`, or a lost answer may queue them twice. */
  enqueue(activations: readonly SessionActivationInput[], options?: EnqueueOptions): Promise<EnqueueReply>;
  activation(id: string, options?: Abortable): Promise<StateReply>;
  activations(ids: readonly string[], options?: Abortable): Promise<{ activations: StateReply[] }>;
  cancelActivation(id: string, options?: WithReason): Promise<CancelReply>;
  cancelActivations(ids: readonly string[], options?: WithReason): Promise<{ activations: CancelReply[] }>;
  retryActivation(id: string, options?: Abortable): Promise<RetryReply>;
  /** Waits so many seconds for it (default 0); null: it has not ended. */
  result(id: string, options?: Abortable & { wait?: number }): Promise<ActivationResult | null>;
  events(id: string, options?: Abortable & { last_event_id?: string }): AsyncGenerator<SessionEvent, undefined>;
  /** All that happened in it, as far as it is known now. */
  story(id: string, options?: Abortable): Promise<Story>;
  /** Those that something was queued of last first; `after`: the `next` of the answer before. */
  runs(options?: Abortable & { after?: string; limit?: number }): Promise<RunListReply>;
  run(runId: string, options?: Abortable): Promise<RunReply>;
  /** A compact row for each of its activations that ended (default), run or wait. */
  rows(runId: string, options?: RowsOptions): AsyncGenerator<RunRowReply, undefined>;
  results(runId: string, options?: ResultsOptions): AsyncGenerator<ResultLine, undefined>;
  pauseRun(runId: string, options?: WithReason): Promise<RunPause>;
  resumeRun(runId: string, options?: Abortable): Promise<RunPause>;
  retryRun(runId: string, options?: Abortable & { status?: Status }): Promise<RunRetried>;
  cancelRun(runId: string, options?: WithReason): Promise<RunCancelled>;
  /** Of rows that could not be queued: their run has their ends, too. Up to 1,000. */
  recordRefused(runId: string, rows: readonly RefusedRow[], options?: Abortable): Promise<RefusedRecorded>;
  breaker(runId: string, options?: Abortable): Promise<BreakerReply>;
  setBreaker(runId: string, mode: BreakerMode, options?: Abortable): Promise<BreakerReply>;
  /** What it may use before it starts nothing more. */
  setBudget(runId: string, budget: BudgetBody, options?: Abortable): Promise<BudgetReply>;
  workers(options?: Abortable & { run_id?: string }): Promise<WorkersReply>;
  /** Its bytes; the caller reads them, or destroys the stream. `range`: both ends included. */
  artifact(id: string, attempt: number, path: string, options?: Abortable & { range?: { start: number; end: number } }): Promise<Readable>;
  /** Puts a local file; name it in an activation as the answer says. */
  putFile(sha256: string, path: string, options?: Abortable): Promise<{ artifact: string }>;
  claimResults(claim: ClaimResults, options?: Abortable): Promise<ClaimedResults>;
  ackResults(ack: AckResults, options?: Abortable): Promise<AckedResults>;
  resultQueues(options?: Abortable): Promise<UnreadResults>;
  seal(activation: SessionActivationInput, options?: Abortable): Promise<Sealed>;
  /** Pushes results to a URL from now on. Give it a secret, or a lost answer loses the one that was made. */
  putWebhook(name: string, webhook: SetWebhook, options?: Abortable): Promise<SavedWebhook>;
  webhooks(options?: Abortable): Promise<WebhookList>;
  removeWebhook(name: string, options?: Abortable): Promise<RemovedWebhook>;
  /** What could not be pushed, the newest first. */
  deadLetters(name: string, options?: Abortable & { offset?: number; limit?: number }): Promise<DeadLetterList>;
  /** Those that are named, else the oldest 1,000. */
  replayDead(name: string, deliveryIds?: readonly string[], options?: Abortable): Promise<Replayed>;
}

/** fetch gives up an answer whose headers take 300 s; longer waits are asked for in pieces. */
const PIECE_SECONDS = 120;

/** Opens nothing until it is asked something. Throws RollcallError "server_url". */
export function createClient(options: ClientOptions): Client {
  const send = sender(options);
  const ask = async <T>(operation: Operation, request: RequestOptions): Promise<T> => (await (await send(operation, request)).json()) as T;

  return {
    enqueue: (activations, { idempotency_key, signal, ...query } = {}) =>
      ask("enqueue", {
        json: activations,
        query: { ...query },
        ...(idempotency_key === undefined ? {} : { headers: { "idempotency-key": idempotency_key } }),
        ...given(signal),
      }),
    activation: (id, { signal } = {}) => ask("activation", { params: { id }, ...given(signal) }),
    activations: (activation_ids, { signal } = {}) => ask("activations", { json: { activation_ids }, ...given(signal) }),
    cancelActivation: (id, { signal, reason } = {}) => ask("cancelActivation", { params: { id }, query: { reason }, ...given(signal) }),
    cancelActivations: (activation_ids, { signal, ...reason } = {}) =>
      ask("cancelActivations", { json: { activation_ids, ...reason }, ...given(signal) }),
    retryActivation: (id, { signal } = {}) => ask("retryActivation", { params: { id }, ...given(signal) }),
    async result(id, { signal, wait = 0 } = {}) {
      const until = performance.now() + wait * 1_000;
      for (;;) {
        const seconds = Math.max(0, Math.min(PIECE_SECONDS, (until - performance.now()) / 1_000));
        const response = await send("result", { params: { id }, query: { wait: seconds }, ...given(signal) });
        if (response.status === 200) return (await response.json()) as ActivationResult;
        await response.body?.cancel();
        if (performance.now() >= until) return null;
      }
    },
    events: (id, more = {}) => sessionEvents(send, id, more),
    story: (id, { signal } = {}) => ask("story", { params: { id }, ...given(signal) }),
    runs: ({ signal, ...query } = {}) => ask("runs", { query, ...given(signal) }),
    run: (run_id, { signal } = {}) => ask("run", { params: { run_id }, ...given(signal) }),
    rows: (runId, more = {}) => runRows(send, runId, more),
    results: (runId, more = {}) => resultLines(send, runId, more),
    pauseRun: (run_id, { signal, reason } = {}) => ask("pauseRun", { params: { run_id }, query: { reason }, ...given(signal) }),
    resumeRun: (run_id, { signal } = {}) => ask("resumeRun", { params: { run_id }, ...given(signal) }),
    retryRun: (run_id, { signal, status } = {}) => ask("retryRun", { params: { run_id }, query: { status }, ...given(signal) }),
    cancelRun: (run_id, { signal, reason } = {}) => ask("cancelRun", { params: { run_id }, query: { reason }, ...given(signal) }),
    recordRefused: (run_id, refused, { signal } = {}) => ask("recordRefused", { params: { run_id }, json: { refused }, ...given(signal) }),
    breaker: (run_id, { signal } = {}) => ask("breaker", { params: { run_id }, ...given(signal) }),
    setBreaker: (run_id, mode, { signal } = {}) => ask("setBreaker", { params: { run_id }, json: { mode }, ...given(signal) }),
    setBudget: (run_id, budget, { signal } = {}) => ask("setBudget", { params: { run_id }, json: budget, ...given(signal) }),
    workers: ({ signal, run_id } = {}) => ask("workers", { query: { run_id }, ...given(signal) }),
    async artifact(activation_id, attempt, path, { signal, range } = {}) {
      const headers = range === undefined ? {} : { range: `bytes=${range.start}-${range.end}` };
      const { body } = await send("artifact", { params: { activation_id, attempt, path }, headers, ...given(signal) });
      return body === null ? Readable.from([]) : Readable.fromWeb(body);
    },
    async putFile(sha256, path, { signal } = {}) {
      const { size } = await stat(path);
      const body = () => ({ stream: Readable.toWeb(createReadStream(path)) as ReadableStream<Uint8Array>, bytes: size });
      return ask("putFile", { params: { sha256 }, body, ...given(signal) });
    },
    claimResults: (json, { signal } = {}) =>
      ask("claimResults", { json: { ...json, wait: Math.min(json.wait ?? 0, PIECE_SECONDS) }, ...given(signal) }),
    ackResults: (json, { signal } = {}) => ask("ackResults", { json, ...given(signal) }),
    resultQueues: ({ signal } = {}) => ask("resultQueues", given(signal)),
    seal: (json, { signal } = {}) => ask("seal", { json, ...given(signal) }),
    putWebhook: (name, json, { signal } = {}) => ask("putWebhook", { params: { name }, json, ...given(signal) }),
    webhooks: ({ signal } = {}) => ask("webhooks", given(signal)),
    removeWebhook: (name, { signal } = {}) => ask("removeWebhook", { params: { name }, ...given(signal) }),
    deadLetters: (name, { signal, ...query } = {}) => ask("deadLetters", { params: { name }, query, ...given(signal) }),
    replayDead: (name, delivery_ids, { signal } = {}) =>
      ask("replayDead", { params: { name }, json: delivery_ids === undefined ? {} : { delivery_ids }, ...given(signal) }),
  };
}

function given(signal: AbortSignal | undefined): Abortable {
  return signal === undefined ? {} : { signal };
}
