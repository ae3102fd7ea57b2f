// SPDX-License-Identifier: Apache-2.0
import { diag, DiagLogLevel } from "@opentelemetry/api";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider, type SpanExporter } from "@opentelemetry/sdk-trace-node";
import { within } from "../activation/within.ts";
import { otelTracing } from "./otel.ts";
import type { SpanProtocol } from "./start-tracing.ts";
import type { Tracing } from "./tracing.ts";

/** For the last spans; a collector that hangs must not hold up the end of the process. */
const LAST_SPANS_MS = 3_000;
const TOLD_AGAIN_MS = 60_000;

/**
 * Registers OpenTelemetry's SDK for this process, once. Endpoint, headers, time-outs, sampling, limits and resource attributes are
 * the SDK's own business: it reads its variables itself.
 */
export async function startOtel(
  protocol: SpanProtocol,
  { service, version, onProblem }: { service: string; version: string; onProblem: (reason: string) => void },
): Promise<Tracing> {
  tellProblems(onProblem);
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ "service.name": service, "service.version": version }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    spanProcessors: [new BatchSpanProcessor(await exporterFor(protocol))],
  });
  provider.register();
  return otelTracing({
    version,
    async close() {
      await within(LAST_SPANS_MS, provider.shutdown());
    },
  });
}

async function exporterFor(protocol: SpanProtocol): Promise<SpanExporter> {
  if (protocol === "http/json") return new (await import("@opentelemetry/exporter-trace-otlp-http")).OTLPTraceExporter();
  return new (await import("@opentelemetry/exporter-trace-otlp-proto")).OTLPTraceExporter();
}

function tellProblems(onProblem: (reason: string) => void): void {
  let last = Number.NEGATIVE_INFINITY;
  const tell = (message: string): void => {
    if (performance.now() - last < TOLD_AGAIN_MS) return;
    last = performance.now();
    onProblem(message.slice(0, 300));
  };
  const quiet = (): void => undefined;
  diag.setLogger({ error: tell, warn: tell, info: quiet, debug: quiet, verbose: quiet }, { logLevel: DiagLogLevel.WARN });
}
