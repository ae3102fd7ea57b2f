// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { runActivation, type RunPorts } from "../activation/run.ts";
import { admissionPolicy } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { ACTIVATION_SCHEMA_MINOR } from "../contract/activation.ts";
import { watchRoom } from "../host/watch-room.ts";
import { startActivationWorker } from "../queue/activation-worker.ts";
import type { LocalWorkers } from "../rollout/queue-fleet.ts";
import { startReaper, type Removed } from "../sandbox/reaper.ts";
import type { WorkerMetrics, WorkerMetricsFacts } from "../telemetry/worker-metrics.ts";
import { attemptTelemetry, tracedRun } from "../telemetry/worker-telemetry.ts";
import type { Machine } from "./machine.ts";
import { sandboxStateDir, sharedSandboxRoot } from "./provider.ts";
import type { Station } from "./station.ts";
import { rollcallVersion } from "./version.ts";

/** An orderly stop waits for sandboxes to be collected from and destroyed; the bound is for what hangs. */
const NOW_GRACE_MS = 1_000;

interface LocalWorkerOptions {
  settings: Settings;
  concurrency: number;
  /** Makes what counts; default nobody does. */
  metricsFor?: (facts: WorkerMetricsFacts) => WorkerMetrics | null;
}

/** Starts to take activations in this process; whoever started it stops it before the station closes. */
export async function startLocalWorker(
  station: Station,
  machine: Machine,
  { settings, concurrency, metricsFor = () => null }: LocalWorkerOptions,
): Promise<LocalWorkers> {
  const { queues, keys, store, log, liveSecrets, tracing } = station;
  let running = (): number => 0;
  const metrics = metricsFor({ concurrency, floors: settings.floors, running: () => running() });
  const onRemoved = (what: Removed): void => metrics?.removed(what);
  if (settings.sandbox.provider === "host") {
    log.warn("sandbox provider host: no isolation; the model's commands run with all rights of this user, on its files");
  }
  for (const { version, why } of machine.leftOut) log.warn({ version, why }, "a Codex that is here cannot be run: takes no session of it");
  const abandoned: RunPorts["abandoned"] = new Set();
  const reaper = await startReaper({ stateDir: sandboxStateDir(settings), sharedRoot: sharedSandboxRoot(), abandoned, log, onRemoved });
  const worker = { id: `${machine.host}-${process.pid}-${randomBytes(3).toString("hex")}`, host: machine.host, version: rollcallVersion() };
  const ports = {
    store,
    providers: machine.providers,
    defaultProvider: settings.sandbox.provider,
    codexes: machine.codexes,
    modelKeys: machine.modelKeys,
    defaultKeyEnv: settings.model.api_key_env,
    keyOrigins: admissionPolicy(settings).key_origins,
    systemPrompt: settings.system_prompt,
    skills: machine.skills,
    createSeconds: settings.sandbox.create_seconds,
    worker,
    abandoned,
    liveSecrets,
    telemetry: attemptTelemetry(tracing, metrics, log),
    log,
  };
  const started = await startActivationWorker({
    queues,
    keys,
    concurrency,
    store,
    defaultModel: settings.model,
    run: tracedRun(tracing, (claim) => runActivation(claim, ports)),
    onLockLost: (how) => metrics?.lockLost(how),
    facts: {
      worker_id: worker.id,
      host: worker.host,
      pid: process.pid,
      providers: Object.keys(machine.providers),
      codex_versions: machine.codexes.map(({ version }) => version),
      key_ids: keys.map(({ id }) => id),
      schema_minor: ACTIVATION_SCHEMA_MINOR,
      store_id: store.id,
      classes: [],
      held_back: null,
    },
    log,
  });
  running = () => started.running();
  const room = await watchRoom({
    paths: [settings.state_dir, tmpdir(), ...[store.directory, sharedSandboxRoot()].filter((path) => path !== null)],
    floors: settings.floors,
    onChange(reason) {
      if (reason === null) log.warn("there is room again: takes sessions");
      else log.warn({ reason }, "too little room for another session: takes none until there is more (settings: floors)");
      started.holdBack(reason);
    },
    onLook: (left, heldBack) => metrics?.room(left, heldBack),
    onError: queues.onError,
  });
  const graceMs = (settings.codex.session_close_timeout_seconds + 30) * 1_000;
  const drain = { ms: settings.drain_seconds * 1_000, afterwards: settings.drain_then };
  return {
    async stop({ now, drains = false }) {
      room.stop();
      await started.close(now ? { graceMs: NOW_GRACE_MS } : { graceMs, ...(drains ? { drain } : {}) });
      const reaped = reaper.stop();
      if (!now) await reaped;
    },
  };
}
