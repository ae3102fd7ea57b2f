// SPDX-License-Identifier: Apache-2.0
import type { ApiPorts } from "../api/ports.ts";
import type { Settings } from "../config/settings.ts";
import { readFleet } from "../queue/fleet-reading.ts";
import { modelServerOf } from "../queue/model-limiter.ts";
import type { Queues } from "../queue/queues.ts";
import { expositionOf } from "../telemetry/exposition.ts";
import { fleetMetrics } from "../telemetry/fleet-metrics.ts";
import { httpMetrics } from "../telemetry/http-metrics.ts";
import { processRegistry } from "../telemetry/registry.ts";
import { rollcallVersion } from "./version.ts";

/** What an API process counts of its own, and reads of the whole queue when it is asked. One per process. */
export function serverMetrics(queues: Queues, settings: Pick<Settings, "metrics" | "model">): NonNullable<ApiPorts["metrics"]> {
  const registry = processRegistry({ version: rollcallVersion() });
  const configured = modelServerOf({ model: settings.model });
  const fleet = fleetMetrics(registry, {
    read: () => readFleet(queues, { servers: [configured] }),
    queues: settings.metrics.result_queues,
    modelServer: configured,
  });
  return { answered: httpMetrics(registry), exposition: expositionOf(registry, () => fleet.refresh()) };
}
