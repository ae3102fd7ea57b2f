// SPDX-License-Identifier: Apache-2.0
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";

/** Gauges whose names end like a counter's: Prometheus' own linter refuses them. Each is also there by type. */
const ILL_NAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

/** A registry of this process' own with what prom-client knows of it: CPU, memory, event-loop delay, garbage collection. One per process. */
export function processRegistry({ version }: { version: string }): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of ILL_NAMED) registry.removeSingleMetric(name);
  new Gauge({ name: "rollcall_build_info", help: "Always 1; the version is a label.", labelNames: ["version"], registers: [registry] }).set(
    { version },
    1,
  );
  return registry;
}
