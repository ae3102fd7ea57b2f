// SPDX-License-Identifier: Apache-2.0
import type { IncomingHttpHeaders } from "node:http";
import type { ModelRequest } from "./model-request.ts";

export interface RecordedRequest {
  /** Milliseconds since the epoch. */
  at: number;
  path: string;
  headers: IncomingHttpHeaders;
  /** HTTP status of the answer; null = the request was left hanging. */
  status: number | null;
  /** What was played: "reply" or a fault's kind; "rejected" for a request that was not understood or had no key. */
  played: string;
  /** Null for a rejected request. */
  request: ModelRequest | null;
}

const MAX_KEYS = 20_000;

/**
 * What a model server was asked, in bounded memory: every request is counted, by capture key too; only the newest are
 * kept whole, by number and by bytes.
 */
export class RequestLog {
  readonly #kept: { record: RecordedRequest; bytes: number }[] = [];
  readonly #counts = new Map<string, number>();
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
      if (this.#counts.size > MAX_KEYS && oldest.done === false) this.#counts.delete(oldest.value);
    }
    this.#kept.push({ record, bytes });
    this.#bytes += bytes;
    while (this.#kept.length > this.#maxRequests || (this.#bytes > this.#maxBytes && this.#kept.length > 1)) {
      this.#bytes -= this.#kept.shift()?.bytes ?? 0;
    }
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
