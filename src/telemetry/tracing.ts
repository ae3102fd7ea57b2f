// SPDX-License-Identifier: Apache-2.0
import type { Telemetry } from "bullmq";

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanFacts {
  /** Default "internal". */
  kind?: "internal" | "server" | "producer";
  /** W3C trace context; absent: what is active, else a trace of its own. */
  parent?: string | undefined;
  /** Ids, counts and words of closed lists: no text of others. */
  attributes?: Attributes;
}

/** A span that whoever began it ends. */
export interface OpenSpan {
  /** W3C trace context, for what it leads to; undefined: nobody traces. */
  readonly traceparent: string | undefined;
  set(attributes: Attributes): void;
  rename(name: string): void;
  /** It failed. `code`: a word of a closed list, never a message. */
  fail(code: string): void;
  end(): void;
}

/** Spans of what this process does. With {@link noTracing} it costs a call. */
export interface Tracing {
  /** The caller ends it; it is not active. */
  begin(name: string, facts: SpanFacts): OpenSpan;
  /** Active while `work` goes on, and ended after it; what is thrown makes it a failed one. */
  within<T>(name: string, facts: SpanFacts, work: (span: OpenSpan) => Promise<T>): Promise<T>;
  /** Of the active span. */
  traceparent(): string | undefined;
  /** For BullMQ's workers: their claims become spans, children of what enqueued them. */
  readonly queue: Telemetry | undefined;
  /** Sends what is left, for a short while. Last of all. */
  close(): Promise<void>;
}

const NO_SPAN: OpenSpan = {
  traceparent: undefined,
  set: () => undefined,
  rename: () => undefined,
  fail: () => undefined,
  end: () => undefined,
};

export const noTracing: Tracing = {
  begin: () => NO_SPAN,
  within: (_name, _facts, work) => work(NO_SPAN),
  traceparent: () => undefined,
  queue: undefined,
  close: () => Promise.resolve(),
};
