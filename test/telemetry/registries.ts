// SPDX-License-Identifier: Apache-2.0
import type { Registry } from "prom-client";
import type { FleetReading } from "../../src/queue/fleet-reading.ts";
import { fleetMetrics } from "../../src/telemetry/fleet-metrics.ts";
import { httpMetrics } from "../../src/telemetry/http-metrics.ts";
import { processRegistry } from "../../src/telemetry/registry.ts";
import { workerMetrics, type WorkerMetrics } from "../../src/telemetry/worker-metrics.ts";

/** Of a worker process, as `rollcall worker` makes it. */
export function workerRegistry(): { registry: Registry; metrics: WorkerMetrics } {
  const registry = processRegistry({ version: "0.0.0" });
  const floors = { disk_mb: 1_024, memory_mb: 256, pids: 256 };
  return { registry, metrics: workerMetrics(registry, { concurrency: 4, floors, running: () => 0 }) };
}

/** Of a server process, as `rollcall serve` makes it. */
export function serverRegistry(read: () => Promise<FleetReading> = () => Promise.reject(new Error("no Redis here"))): {
  registry: Registry;
  refresh: () => Promise<void>;
  answered: ReturnType<typeof httpMetrics>;
} {
  const registry = processRegistry({ version: "0.0.0" });
  const answered = httpMetrics(registry);
  const fleet = fleetMetrics(registry, { read, queues: ["results"], modelServer: "https://model.example" });
  return { registry, answered, refresh: () => fleet.refresh() };
}

/** The names that a metric may be asked for by in PromQL. */
export async function seriesNames(registry: Registry): Promise<string[]> {
  const metrics = await registry.getMetricsAsJSON();
  return metrics.flatMap(({ name, type }) => (String(type) === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]));
}
