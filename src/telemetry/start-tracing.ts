// SPDX-License-Identifier: Apache-2.0
import { RollcallError } from "../errors.ts";
import { noTracing, type Tracing } from "./tracing.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** How spans leave this process. */
export type SpanProtocol = "http/protobuf" | "http/json";

/**
 * Whether OpenTelemetry's variables ask for traces, and how they are to be sent; null = they do not. Off unless OTEL_TRACES_EXPORTER
 * is `otlp`, or an OTLP endpoint is set and it is not `none`. Throws RollcallError "tracing_unsupported". Pure.
 */
export function tracesWanted(env: Environment): SpanProtocol | null {
  const value = (name: string): string | undefined => env[name]?.trim().toLowerCase() || undefined;
  const exporter = value("OTEL_TRACES_EXPORTER");
  const hasEndpoint = value("OTEL_EXPORTER_OTLP_ENDPOINT") ?? value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if (value("OTEL_SDK_DISABLED") === "true" || exporter === "none" || (exporter ?? hasEndpoint) === undefined) return null;
  if (exporter !== undefined && exporter !== "otlp")
    throw new RollcallError("tracing_unsupported", "OTEL_TRACES_EXPORTER: Rollcall sends traces by OTLP only; set it to otlp or none");
  const protocol = value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") ?? value("OTEL_EXPORTER_OTLP_PROTOCOL") ?? "http/protobuf";
  if (protocol === "http/protobuf" || protocol === "http/json") return protocol;
  throw new RollcallError(
    "tracing_unsupported",
    "OTEL_EXPORTER_OTLP_PROTOCOL: Rollcall sends http/protobuf or http/json; set it to one of them",
  );
}

/**
 * Begins to trace when OpenTelemetry's variables ask for it; its packages are loaded only then. `service`: the name of this kind of
 * process, unless OTEL_SERVICE_NAME says another. `onProblem` hears, at most once a minute, why spans could not be sent. The caller
 * closes it last. Throws RollcallError "tracing_unsupported".
 */
export async function startTracing(
  env: Environment,
  process: { service: string; version: string; onProblem: (reason: string) => void },
): Promise<Tracing> {
  const protocol = tracesWanted(env);
  if (protocol === null) return noTracing;
  const { startOtel } = await import("./otel-sdk.ts");
  return startOtel(protocol, process);
}
