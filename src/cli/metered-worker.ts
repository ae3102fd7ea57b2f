// SPDX-License-Identifier: Apache-2.0
import { hostAndPort } from "../config/address.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { LocalWorkers } from "../rollout/queue-fleet.ts";
import { apiKeysOf } from "./api-keys-of.ts";
import { startLocalWorker } from "./local-worker.ts";
import type { Machine } from "./machine.ts";
import type { Station } from "./station.ts";
import { rollcallVersion } from "./version.ts";

/**
 * Starts to take activations in this process, and where `metrics.address` says so serves its numbers; what that needs is loaded only
 * then. The keys are the API's own, so that there is one place to change them: a worker needs only their hashes (api.keys_file). The
 * caller stops it, then ends `closeMetrics`. Throws RollcallError.
 */
export async function startMeteredWorker(
  station: Station,
  machine: Machine,
  { settings, env }: { settings: Settings; env: Environment },
): Promise<LocalWorkers & { closeMetrics(): Promise<void> }> {
  const { concurrency } = settings;
  const { address } = settings.metrics;
  if (address === undefined) {
    const worker = await startLocalWorker(station, machine, { settings, concurrency });
    return { ...worker, closeMetrics: () => Promise.resolve() };
  }
  const [{ serveMetrics }, { processRegistry }, { expositionOf }, { workerMetrics }] = await Promise.all([
    import("../api/metrics-server.ts"),
    import("../telemetry/registry.ts"),
    import("../telemetry/exposition.ts"),
    import("../telemetry/worker-metrics.ts"),
  ]);
  const registry = processRegistry({ version: rollcallVersion() });
  const { log } = station;
  const apiKeys = await apiKeysOf(settings, env, log);
  // Before anything is claimed: an address that cannot be had is a start that failed.
  const server = await serveMetrics({ exposition: expositionOf(registry), apiKeys, log }, hostAndPort(address));
  const closeMetrics = (): Promise<void> => server.close({ graceMs: 0 });
  try {
    const metricsFor = (facts: Parameters<typeof workerMetrics>[1]): ReturnType<typeof workerMetrics> => workerMetrics(registry, facts);
    const worker = await startLocalWorker(station, machine, { settings, concurrency, metricsFor });
    log.info({ origin: server.origin }, "metrics are served");
    return { ...worker, closeMetrics };
  } catch (error) {
    await closeMetrics();
    throw error;
  }
}
