// SPDX-License-Identifier: Apache-2.0
import type { IncomingHttpHeaders } from "node:http";
import type { ModelRequest } from "./model-request.ts";
import type { Usage } from "./script.ts";

export interface RecordedRequest {
  /** Milliseconds since the epoch. */
  at: number;
  path: string;
  headers: IncomingHttpHeaders;
  /** HTTP status of the answer; null = none: it was left hanging, or the connection was closed. */
  status: number | null;
  /** What was played: "reply" or a fault's kind; "rejected" for a request that was not understood or had no key. */
  played: string;
  /** Null for a rejected request. */
  request: ModelRequest | null;
}

/** Answers that came to their end, usage included. */
export interface Answers {
  answered: number;
  usage: Usage;
  /** The newest 1,000. */
  response_ids: string[];
}

/** What one thread was answered: what whoever reads Codex must come to. */
export interface ThreadCount extends Answers {
  thread_id: string | null;
  /** null: the session itself. */
  parent_thread_id: string | null;
  /** Of the answered, those to requests for a summary. */
  compactions: number;
  /** Of the newest answer. */
  last_usage: Usage;
  /** Apart from the others: ended by response.incomplete, and billed, though not every Codex tells of them. */
  incomplete: Answers;
  /** What the model could call in its first request. */
  offered: string[];
}

const MAX_KEYS = 20_000;
const MAX_RESPONSE_IDS = 1_000;
export const NO_USAGE: Usage = {
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_input_tokens: 0,
  output_tokens: 0,
  reasoning_output_tokens: 0,
};

/**
 * What a model server was asked, in bounded memory: every request is counted, by capture key too; only the newest are
 * kept whole, by number and by bytes.
 */
export class RequestLog {
  readonly #kept: { record: RecordedRequest; bytes: number }[] = [];
  readonly #counts = new Map<string, number>();
  readonly #threads = new Map<string, ThreadCount[]>();
  readonly #maxRequests: number;
  readonly #maxBytes: number;
  #bytes = 0;
  #total = 0;

  constructor({ maxRequests = 512, maxBytes = 64 * 1024 * 1024 }: { maxRequests?: number; maxBytes?: number } = {}) {
    this.#maxRequests = maxRequests;
    this.#maxBytes = maxBytes;
  }

  add(record: RecordedRequest, bytes: number): void {
    this.#total++;
    const key = record.request?.capture_key;
    if (key != null) {
      this.#counts.set(key, this.countOf(key) + 1);
      const oldest = this.#counts.keys().next();
      if (this.#counts.size > MAX_KEYS && oldest.done === false) {
        this.#counts.delete(oldest.value);
        this.#threads.delete(oldest.value);
      }
    }
    this.#kept.push({ record, bytes });
    this.#bytes += bytes;
    while (this.#kept.length > this.#maxRequests || (this.#bytes > this.#maxBytes && this.#kept.length > 1)) {
      this.#bytes -= this.#kept.shift()?.bytes ?? 0;
    }
  }

  /** An answer went out to its end, its usage with it. */
  answered(request: ModelRequest, responseId: string, usage: Usage, how: "complete" | "incomplete" = "complete"): void {
    const key = request.capture_key ?? "";
    const threads = this.#threads.get(key) ?? [];
    this.#threads.set(key, threads);
    let count = threads.find(({ thread_id }) => thread_id === request.thread_id);
    if (count === undefined) {
      const { thread_id, parent_thread_id, offered } = request;
      count = { thread_id, parent_thread_id, ...noAnswers(), compactions: 0, last_usage: NO_USAGE, incomplete: noAnswers(), offered };
      threads.push(count);
    }
    if (request.compaction) count.compactions++;
    const answers = how === "complete" ? count : count.incomplete;
    answers.answered++;
    answers.usage = addUsage(answers.usage, usage);
    if (how === "complete") count.last_usage = usage;
    answers.response_ids.push(responseId);
    if (answers.response_ids.length > MAX_RESPONSE_IDS) answers.response_ids.shift();
  }

  /** The threads of a capture key that got an answer, in the order of their first ones. Those without a key are "". */
  threadsOf(captureKey: string): readonly ThreadCount[] {
    return this.#threads.get(captureKey) ?? [];
  }

  /** All POSTs that ever came, rejected ones included. */
  get total(): number {
    return this.#total;
  }

  /** Model calls under this capture key; retries of Codex count. */
  countOf(captureKey: string): number {
    return this.#counts.get(captureKey) ?? 0;
  }

  /** Capture keys seen, the oldest first. */
  captureKeys(): string[] {
    return [...this.#counts.keys()];
  }

  /** The requests still kept, the oldest first; with a capture key, its only. */
  requests(captureKey?: string): RecordedRequest[] {
    const records = this.#kept.map(({ record }) => record);
    return captureKey === undefined ? records : records.filter(({ request }) => request?.capture_key === captureKey);
  }
}

const noAnswers = (): Answers => ({ answered: 0, usage: NO_USAGE, response_ids: [] });

/** The sum of each kind of tokens. */
export function addUsage(one: Usage, other: Usage): Usage {
  const kinds = Object.keys(NO_USAGE) as (keyof Usage)[];
  return Object.fromEntries(kinds.map((kind) => [kind, one[kind] + other[kind]])) as Usage;
}
