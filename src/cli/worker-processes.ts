// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { portsFurther } from "../config/address.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";

const MAIN = fileURLToPath(new URL("./main.js", import.meta.url));
/** A worker that ends by itself is started again after this, doubled each time it does so within a minute. */
const AGAIN_MS = 1_000;
const MOST_MS = 60_000;

export interface WorkerProcesses {
  /** SIGTERM to all, waits for their ends; once `now` is aborted they are told a second time. */
  stop(options: { now: AbortSignal }): Promise<void>;
}

/** Worker processes beside this one, started again when they end. Their log lines go to this process' stderr. */
export function startWorkerProcesses(options: {
  count: number;
  outDir: string | null;
  configFile: string | null;
  /** With what was given as flags; they read all else themselves. */
  settings: Pick<Settings, "concurrency" | "sandbox" | "metrics">;
  env: Environment;
  log: Logger;
}): WorkerProcesses {
  const { count, outDir, configFile, settings, env, log } = options;
  const flags = ["--concurrency", String(settings.concurrency), "--sandbox", settings.sandbox.provider];
  if (outDir !== null) flags.push("--out", outDir);
  if (configFile !== null) flags.push("--config", configFile);
  const living = new Set<ChildProcess>();
  let stopping = false;

  function start(index: number, afterMs: number): void {
    const child = spawn(process.execPath, [MAIN, "worker", ...flags], {
      stdio: ["ignore", "ignore", "inherit"],
      env: {
        ...env,
        ROLLCALL_API_KEY: undefined,
        ROLLCALL_API_KEY_FILE: undefined,
        // One after the other, so that whoever scrapes them knows where.
        ROLLCALL_METRICS: settings.metrics.address === undefined ? undefined : portsFurther(settings.metrics.address, index),
      },
    });
    const since = performance.now();
    living.add(child);
    child.once("error", (error) => log.error({ err: error }, "a worker process could not be started"));
    child.once("exit", (code, signal) => {
      living.delete(child);
      if (stopping) return;
      const pause = performance.now() - since > MOST_MS ? AGAIN_MS : Math.min(MOST_MS, afterMs * 2);
      log.error({ pid: child.pid, code, signal, pause_ms: pause }, "a worker process ended by itself; it is started again");
      setTimeout(() => stopping || start(index, pause), pause).unref();
    });
  }
  for (let index = 0; index < count; index++) start(index, AGAIN_MS);

  return {
    async stop({ now }) {
      stopping = true;
      const ends = [...living].map((child) => once(child, "exit"));
      const tell = (): void => living.forEach((child) => void child.kill("SIGTERM"));
      tell();
      now.addEventListener("abort", tell, { once: true });
      await Promise.all(ends);
      now.removeEventListener("abort", tell);
    },
  };
}
