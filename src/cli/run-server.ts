// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Redis } from "ioredis";
import { createApi } from "../api/app.ts";
import { serveHttp } from "../api/server.ts";
import { admissionPolicy, type Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { watchUnread } from "../queue/unread-results.ts";
import { watchStreams } from "../queue/stream-watch.ts";
import { startWebhookSenders } from "../webhooks/senders.ts";
import { aborted } from "../rollout/waiting.ts";
import { startAgentServer } from "./agent-server.ts";
import { apiKeysOf, requireChosenKey } from "./api-keys-of.ts";
import { stopSignals } from "./signals.ts";
import { serverMetrics } from "./server-metrics.ts";
import { openQueuesOf, openServingStation } from "./station.ts";
import { rollcallVersion } from "./version.ts";
import { startWorkerProcesses } from "./worker-processes.ts";
import { sendSettings } from "./webhook-settings.ts";

/** What `npm run build` makes of web/. */
const WEB = fileURLToPath(new URL("../../web/", import.meta.url));

/** For requests that are being answered when the server stops. */
const GRACE_MS = 10_000;

/** Serves until SIGTERM or SIGINT, or until its embedded Redis is gone for good. Throws RollcallError. */
export async function runServer(options: {
  settings: Settings;
  env: Environment;
  /** Of an embedded Redis; made when it is not there. null: REDIS_URL. */
  outDir: string | null;
  workers: number;
  configFile: string | null;
}): Promise<void> {
  const { settings, env, outDir } = options;
  requireChosenKey(settings, env);
  if (outDir !== null) await mkdir(outDir, { recursive: true });
  const station = await openServingStation({ settings, env, outDir, service: "rollcall-server" });
  const { log, store, keys } = station;
  const stop = stopSignals();
  const queues = openQueuesOf(station.queues.target, settings, log, { role: "fail_fast", tracing: station.tracing });
  const watch = watchStreams(queues);
  const stopWatchingUnread = watchUnread(station.queues, { log, keepMs: settings.retention.unread_results_days * 86_400_000 });
  try {
    await ready(queues.redis, stop.signal); // else the first callers would hear that Redis is away
    const { host, port, hosts, max_body_mb, max_file_mb, requests_per_second, max_waiting, sign_in_hours, secure_cookies } = settings.api;
    const api = createApi({
      queues,
      watch,
      store,
      keys,
      policy: admissionPolicy(settings),
      defaults: settings,
      apiKeys: await apiKeysOf(settings, env, log),
      signIn: { hours: sign_in_hours, secure: secure_cookies },
      limits: { max_body_bytes: max_body_mb * 1_000_000, max_file_bytes: max_file_mb * 1_000_000, requests_per_second, max_waiting },
      hosts: [...hosts, host],
      webhook_hosts: settings.webhooks.allow_hosts,
      web: WEB,
      version: rollcallVersion(),
      metrics: serverMetrics(queues, settings),
      log,
      stopping: stop.signal,
    });
    const server = await serveHttp(api.fetch, { host, port });
    const agents = await startAgentServer(settings, { queues, store, keys, log, stopping: stop.signal }).catch(async (error: unknown) => {
      await server.close({ graceMs: 0 });
      throw error;
    });
    // Here and not in workers, whose hosts may have no way out but to the model, and whose network their sandboxes share.
    const senders = startWebhookSenders({
      queues: station.queues,
      keys,
      store,
      version: rollcallVersion(),
      settings: sendSettings(settings),
      log,
    });
    const workers = startWorkerProcesses({ count: options.workers, outDir, configFile: options.configFile, settings, env, log });
    process.stdout.write(`listening on ${server.origin}\n`);
    if (agents !== null) process.stdout.write(`agent server on ${agents.origin}\n`);
    try {
      await Promise.race([aborted(stop.signal), station.lost]);
    } finally {
      log.info("server stops");
      await Promise.all([
        server.close({ graceMs: GRACE_MS }),
        agents?.close({ graceMs: GRACE_MS }),
        senders.close({ graceMs: GRACE_MS }),
        workers.stop({ now: stop.now }),
      ]);
    }
  } finally {
    stopWatchingUnread();
    watch.close();
    await queues.close();
    await station.close();
    stop.dispose();
  }
}

async function ready(redis: Redis, stopping: AbortSignal): Promise<void> {
  if (redis.status === "ready") return;
  await Promise.race([once(redis, "ready"), aborted(stopping)]);
}
