// SPDX-License-Identifier: Apache-2.0
import { ROOT_CONTEXT, type Context } from "@opentelemetry/api";
import { DelayedError, WaitingError, type Telemetry } from "bullmq";
import { BullMQOtel } from "bullmq-otel";
import { OTHER } from "./closed.ts";

type QueueSpan = ReturnType<Telemetry<Context>["tracer"]["startSpan"]>;

/** What BullMQ may tell of a claim. Not: what a job returned or failed with, its options, and whatever a later version adds. */
const TOLD = new Set(["bullmq.queue.name", "bullmq.job.id", "bullmq.job.name", "bullmq.worker.name"]);
/** The rest are looks at the queue, every few seconds for as long as the process lives. */
const CLAIM = /^process /;

/** A span for each claim of a BullMQ worker, below the one that enqueued the job; nothing of a job's data, and no text of an error. */
export function queueSpans(version: string): Telemetry<Context> {
  const { tracer, contextManager } = new BullMQOtel({ tracerName: "rollcall.queue", version });
  return {
    contextManager: {
      with: (within, work) => contextManager.with(within, work),
      active: () => contextManager.active(),
      root: () => ROOT_CONTEXT,
      getMetadata: (of) => contextManager.getMetadata(of),
      fromMetadata: (active, metadata) => contextManager.fromMetadata(active, metadata),
    },
    tracer: {
      startSpan: (name, options, parent) => (CLAIM.test(name) ? discreet(tracer.startSpan(name, options, parent)) : nothing),
    },
  };
}

function discreet(span: QueueSpan): QueueSpan {
  return {
    setSpanOnContext: (within) => span.setSpanOnContext(within),
    setAttribute: (name, value) => TOLD.has(name) && span.setAttribute(name, value),
    setAttributes: (attributes) => span.setAttributes(Object.fromEntries(Object.entries(attributes).filter(([name]) => TOLD.has(name)))),
    addEvent: () => undefined,
    recordException(thrown) {
      // A job that goes back to the queue is told to BullMQ by throwing.
      if (thrown instanceof DelayedError || thrown instanceof WaitingError) return;
      span.recordException({ name: OTHER, message: "" });
    },
    end: () => span.end(),
  };
}

const nothing: QueueSpan = {
  setSpanOnContext: (within) => within,
  setAttribute: () => undefined,
  setAttributes: () => undefined,
  addEvent: () => undefined,
  recordException: () => undefined,
  end: () => undefined,
};
