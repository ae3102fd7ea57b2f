// SPDX-License-Identifier: Apache-2.0
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { requireDescriptors } from "../host/descriptors.ts";
import { aborted } from "../rollout/waiting.ts";
import { startMeteredWorker } from "./metered-worker.ts";
import { prepareMachine } from "./machine.ts";
import { stopSignals } from "./signals.ts";
import { openServingStation } from "./station.ts";

/** Takes activations until SIGTERM or SIGINT, or until its embedded Redis is gone for good. Throws RollcallError. */
export async function runWorker({ settings, env, outDir }: { settings: Settings; env: Environment; outDir: string | null }): Promise<void> {
  requireDescriptors(settings.concurrency);
  const machine = await prepareMachine(settings, env);
  const station = await openServingStation({ settings, env, outDir, service: "rollcall-worker" });
  const stop = stopSignals();
  try {
    const worker = await startMeteredWorker(station, machine, { settings, env });
    station.log.info({ concurrency: settings.concurrency, codex: machine.codexes.map(({ version }) => version) }, "worker started");
    try {
      await Promise.race([aborted(stop.signal), station.lost]);
    } finally {
      const { drain_seconds, drain_then } = settings;
      station.log.info({ drain_seconds, drain_then }, "worker stops: takes nothing new");
      const drains = stop.signal.aborted; // without a Redis nothing that ends here could be told
      await Promise.race([worker.stop({ now: false, drains }), aborted(stop.now).then(() => worker.stop({ now: true }))]);
      await worker.closeMetrics();
    }
  } finally {
    await station.close();
    stop.dispose();
  }
}
