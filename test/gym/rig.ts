// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { startTestRedis, type TestRedis } from "../support/redis.ts";
import { startRollcall, type RunningCommand } from "../support/rollcall-command.ts";

/** One answer over HTTP. */
export interface Answer {
  status: number;
  body: Record<string, unknown>;
  /** As a caller sends it back; null = the answer set none. */
  cookie: string | null;
}

/** API processes behind one address, workers, and a Redis they share: all real processes. */
export interface AgentRig {
  redis: TestRedis;
  /** Of Redis, the store and the state. */
  root: string;
  /** A new connection each time, so that processes take turns. Checks that every refusal has a string as its detail. */
  post(path: string, body: unknown, options?: PostOptions): Promise<Answer>;
  get(path: string): Promise<Answer>;
  startApi(): Promise<RunningCommand>;
  startWorker(): RunningCommand;
  /** Everything that all processes have written. */
  logs(): string;
  close(): Promise<void>;
}

interface PostOptions {
  cookie?: string | null;
  headers?: Record<string, string>;
  /** Hangs up without waiting for the answer. */
  signal?: AbortSignal;
  /** Sent as it is. */
  text?: string;
}

/** `toml`: settings beside those that every test needs. */
export async function startAgentRig(root: string, toml: string): Promise<AgentRig> {
  const redis = await startTestRedis({ tcp: { password: "pw" } });
  const config = join(root, "rollcall.toml");
  writeFileSync(config, toml);
  const env = {
    REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
    ROLLCALL_CONFIG: config,
    ROLLCALL_SECRET_KEY: randomBytes(32).toString("base64"),
    ROLLCALL_ARTIFACTS: join(root, "store"),
    ROLLCALL_API_KEY: "a-key-that-the-agent-server-never-asks-for",
    ROLLCALL_API_PORT: "0",
    ROLLCALL_AGENT_SERVER: "127.0.0.1:0",
    XDG_STATE_HOME: join(root, "state"),
    OPENAI_API_KEY: "stand-in-model-key",
    TMPDIR: root,
  };
  const commands: RunningCommand[] = [];
  const backends: { port: number; command: RunningCommand }[] = [];
  const front = await roundRobin(() =>
    backends.filter(({ command }) => command.child.exitCode === null && command.child.signalCode === null),
  );

  const call = (method: string, path: string, options: PostOptions & { payload?: string }): Promise<Answer> => {
    const { payload, cookie, headers, signal } = options;
    return new Promise((resolve, reject) => {
      const sent = request({
        port: front.port,
        host: "127.0.0.1",
        method,
        path,
        agent: false,
        ...(signal === undefined ? {} : { signal }),
        headers: { ...(payload === undefined ? {} : { "content-type": "application/json" }), ...(cookie ? { cookie } : {}), ...headers },
      });
      sent.on("error", reject);
      sent.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("error", reject);
        response.on("end", () => {
          const body = JSON.parse(text) as Record<string, unknown>;
          const status = response.statusCode!;
          if (status !== 200) expect(body, text).toEqual({ detail: expect.any(String) as string });
          resolve({ status, body, cookie: response.headers["set-cookie"]?.[0]?.split(";")[0] ?? null });
        });
      });
      sent.end(payload);
    });
  };

  return {
    redis,
    root,
    post: (path, body, options = {}) => call("POST", path, { ...options, payload: options.text ?? JSON.stringify(body) }),
    get: (path) => call("GET", path, {}),
    async startApi() {
      const command = startRollcall([], { env, entry: "workers/api.js" });
      commands.push(command);
      const origin = await vi.waitFor(
        () => {
          const found = /agent server on (http:\S+)/.exec(command.stdout())?.[1];
          expect(found, command.stderr()).toBeDefined();
          return found!;
        },
        { timeout: 60_000, interval: 100 },
      );
      backends.push({ port: Number(new URL(origin).port), command });
      return command;
    },
    startWorker() {
      const command = startRollcall([], { env, entry: "workers/activation.js" });
      commands.push(command);
      return command;
    },
    logs: () => commands.map((command) => command.stdout() + command.stderr()).join(""),
    async close() {
      for (const { child } of commands) child.kill("SIGKILL");
      await Promise.all(commands.map(({ ended }) => ended));
      front.close();
      await redis.stop();
    },
  };
}

/** A load balancer in its plainest form: each connection goes to the next process that lives. */
async function roundRobin(living: () => { port: number }[]): Promise<{ port: number; close(): void }> {
  let turn = 0;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const backends = living();
    const chosen = backends[turn++ % Math.max(1, backends.length)];
    if (chosen === undefined) {
      near.destroy();
      return;
    }
    const far = connect(chosen.port, "127.0.0.1");
    near.pipe(far).pipe(near);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy()).on("close", () => (sockets.delete(one), other.destroy()));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
