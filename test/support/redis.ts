// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findOnPath, findRedisServer } from "../../src/redis/binary.ts";
import type { RedisTarget } from "../../src/redis/connect.ts";
import { redisAnswers } from "../../src/redis/server.ts";

export interface TestRedisOptions {
  /** Default "noeviction". */
  maxmemoryPolicy?: string;
  /** Default true, with an fsync before each reply. */
  appendonly?: boolean;
  /** Listen on TCP, on a free loopback port, instead of a unix socket; `password` becomes requirepass. */
  tcp?: { password?: string };
  /** More command line options, e.g. "--user default on nopass ~* &* +@all -config".split(" ") where CONFIG is forbidden. */
  args?: readonly string[];
  /** Default empty. */
  env?: Record<string, string>;
}

export interface TestRedis {
  readonly target: RedisTarget;
  /** Holds its data and socket; removed by stop(). */
  readonly dir: string;
  readonly pid: number;
  /** kill -9, returns when it is dead. */
  kill9(): Promise<void>;
  /** Starts it again on the same target with the same data (after kill9, or stops it first). */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** A real Redis of the test's own, ready to use. The test stops it. Fails with the install line when there is no redis-server. */
export async function startTestRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const path = process.env["PATH"] ?? "";
  const server = await findRedisServer(path);
  const setpriv = await findOnPath(["setpriv"], path);
  const dir = await mkdtemp(join(tmpdir(), "rollcall-redis-"));
  const port = options.tcp === undefined ? 0 : await freePort();
  const socket = join(dir, "redis.sock");
  const credentials = options.tcp?.password === undefined ? "" : `:${encodeURIComponent(options.tcp.password)}@`;
  const target: RedisTarget =
    options.tcp === undefined ? { kind: "socket", path: socket } : { kind: "url", url: `redis://${credentials}127.0.0.1:${port}/0` };

  const config: [string, string][] = [
    ["--dir", dir],
    ["--save", ""],
    ["--appendonly", options.appendonly === false ? "no" : "yes"],
    ["--appendfsync", "always"],
    ["--maxmemory-policy", options.maxmemoryPolicy ?? "noeviction"],
    ["--port", String(port)],
    ...(options.tcp === undefined ? [["--unixsocket", socket] as [string, string]] : [["--bind", "127.0.0.1"] as [string, string]]),
    ...(options.tcp?.password === undefined ? [] : [["--requirepass", options.tcp.password] as [string, string]]),
  ];
  // It must not outlive a test process that is killed.
  const command = [...(setpriv === null ? [] : [setpriv, "--pdeathsig", "KILL"]), server, ...config.flat(), ...(options.args ?? [])];
  let child: ChildProcess;

  async function start(): Promise<void> {
    child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "pipe", "pipe"], env: options.env ?? {} });
    let output = "";
    const keep = (chunk: Buffer) => (output = (output + chunk.toString("utf8")).slice(-4_000));
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    const ended = once(child, "exit");
    if (!(await redisAnswers(target, ended))) throw new Error(`the test's redis-server ended at once:\n${output}`);
  }

  async function end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  try {
    await start();
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
  return {
    target,
    dir,
    get pid() {
      return child.pid!;
    },
    kill9: () => end("SIGKILL"),
    restart: async () => {
      await end("SIGTERM");
      await start();
    },
    stop: async () => {
      await end("SIGTERM");
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A free port of the loopback interface. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
