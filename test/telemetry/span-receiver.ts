// SPDX-License-Identifier: Apache-2.0
import { readBody, serveOnLoopback } from "../../examples/stand-ins/loopback.ts";

/** One span as OTLP/HTTP has it in JSON. */
export interface ReceivedSpan {
  service: string;
  traceId: string;
  spanId: string;
  /** "" where it has none. */
  parentSpanId: string;
  name: string;
  kind: number;
  /** ERROR's message; null = not failed. */
  failed: string | null;
  attributes: Record<string, unknown>;
  links: string[];
  events: unknown[];
}

export interface SpanReceiver {
  url: string;
  spans: ReceivedSpan[];
  /** Everything that came, as it was: headers and bodies. */
  raw(): string;
  close(): Promise<void>;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}
type SentSpan = Omit<ReceivedSpan, "service" | "failed" | "attributes" | "links" | "parentSpanId" | "events"> & {
  parentSpanId?: string;
  status: { code?: number; message?: string };
  attributes: Attribute[];
  links?: { traceId: string }[];
  events?: unknown[];
};

interface Payload {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: SentSpan[];
    }[];
  }[];
}

/** A collector in its plainest form: OTLP over HTTP, in JSON, on loopback. */
export async function startSpanReceiver(): Promise<SpanReceiver> {
  const spans: ReceivedSpan[] = [];
  let raw = "";
  const server = await serveOnLoopback((request, response) => {
    void readBody(request, 16_000_000).then((body) => {
      raw += `${JSON.stringify(request.headers)}\n${body ?? ""}\n`;
      if (request.url === "/v1/traces") spans.push(...spansOf(JSON.parse(body ?? "") as Payload));
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  return { url: server.origin, spans, raw: () => raw, close: () => server.close() };
}

function spansOf({ resourceSpans }: Payload): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap((scope) =>
      scope.spans.map(({ status, attributes, links = [], parentSpanId = "", events = [], ...span }) => ({
        ...span,
        parentSpanId,
        events,
        service: String(flat(resource.attributes)["service.name"]),
        failed: status.code === 2 ? (status.message ?? "") : null,
        attributes: flat(attributes),
        links: links.map(({ traceId }) => traceId),
      })),
    ),
  );
}

function flat(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
