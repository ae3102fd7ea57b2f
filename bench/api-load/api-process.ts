// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface ApiProcess {
  origin: string;
  /** Resident memory in MB now, and the most there ever was. */
  memory(): Promise<{ now: number; peak: number }>;
  /** CPU seconds it has used. */
  cpuSeconds(): Promise<number>;
  stop(): Promise<void>;
}

/** `workers/api.js` of the built program as a process of its own, on a free port, with no limit of rate. `dir`: its settings and its store. */
export async function startApiProcess(options: {
  entry: string;
  dir: string;
  redisUrl: string;
  key: string;
  secretKey: string;
}): Promise<ApiProcess> {
  const config = join(options.dir, "rollcall.toml");
  await writeFile(config, `[api]\nport = 0\nrequests_per_second = 1000000\n`);
  const child = spawn(process.execPath, [options.entry], {
    stdio: ["ignore", "pipe", "ignore"], // its log has a line for each request
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: options.dir,
      REDIS_URL: options.redisUrl,
      ROLLCALL_CONFIG: config,
      ROLLCALL_SECRET_KEY: options.secretKey,
      ROLLCALL_API_KEY: options.key,
      ROLLCALL_ARTIFACTS_DIR: join(options.dir, "store"),
    },
  });
  const ended = once(child, "exit");
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const [said] = await Promise.race([once(child.stdout.setEncoding("utf8"), "data"), ended]);
  const origin = /listening on (\S+)/.exec(String(said))?.[1];
  if (origin === undefined) throw new Error(`${options.entry} ended before it listened`);
  return {
    origin,
    async memory() {
      const status = await readFile(`/proc/${child.pid}/status`, "utf8");
      const mb = (name: string): number => Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1_000);
      return { now: mb("VmRSS"), peak: mb("VmHWM") };
    },
    async cpuSeconds() {
      const stat = await readFile(`/proc/${child.pid}/stat`, "latin1");
      const [user, system] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14).map(Number) as [number, number];
      return (user + system) / 100; // clock ticks
    },
    async stop() {
      child.kill("SIGTERM");
      await ended;
      process.off("exit", kill);
    },
  };
}
