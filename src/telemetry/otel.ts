// SPDX-License-Identifier: Apache-2.0
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Context, type Span } from "@opentelemetry/api";
import { codeOfError } from "./error-code.ts";
import { queueSpans } from "./queue-spans.ts";
import type { OpenSpan, SpanFacts, Tracing } from "./tracing.ts";

const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, producer: SpanKind.PRODUCER };

/** Spans by OpenTelemetry, whose SDK the process has registered. `close`: of that SDK. */
export function otelTracing({ version, close }: { version: string; close: () => Promise<void> }): Tracing {
  const tracer = trace.getTracer("rollcall", version);

  function start(name: string, { kind = "internal", parent, attributes = {} }: SpanFacts): { span: Span; within: Context } {
    const active = context.active();
    const from = parent === undefined ? active : propagation.extract(ROOT_CONTEXT, { traceparent: parent });
    // What a producer's own trace asked for is also of the request that brought it.
    const link = parent === undefined ? undefined : trace.getSpanContext(active);
    const span = tracer.startSpan(
      name,
      { kind: KINDS[kind], attributes: { ...attributes }, ...(link === undefined ? {} : { links: [{ context: link }] }) },
      from,
    );
    return { span, within: trace.setSpan(from, span) };
  }

  return {
    begin(name, facts) {
      const { span, within } = start(name, facts);
      return openSpan(span, within);
    },
    async within(name, facts, work) {
      const { span, within } = start(name, facts);
      const open = openSpan(span, within);
      try {
        return await context.with(within, () => work(open));
      } catch (error) {
        open.fail(codeOfError(error));
        throw error;
      } finally {
        open.end();
      }
    },
    traceparent: () => traceparentOf(context.active()),
    queue: queueSpans(version),
    close,
  };
}

function openSpan(span: Span, within: Context): OpenSpan {
  return {
    traceparent: traceparentOf(within),
    set: (attributes) => void span.setAttributes({ ...attributes }),
    rename: (name) => void span.updateName(name),
    fail: (code) => void span.setStatus({ code: SpanStatusCode.ERROR, message: code }),
    end: () => span.end(),
  };
}

function traceparentOf(from: Context): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagation.inject(from, carrier);
  return carrier.traceparent;
}
