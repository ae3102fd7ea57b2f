// SPDX-License-Identifier: Apache-2.0
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync, statSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { findRedisServer } from "../../src/redis/binary.ts";
import type { RedisTarget } from "../../src/redis/connect.ts";
import { redisAnswers } from "../../src/redis/server.ts";

const PASSWORD = "pw-of-the-namespaces";
const HOSTS = ["a", "b"] as const;
export type Host = (typeof HOSTS)[number];

/** Two hosts and a Redis, each in a network namespace of its own; only Redis is between them. */
export interface Hosts {
  /** For the test itself, by a way that no cut reaches. */
  redis: RedisTarget;
  /** As `host` reaches it. */
  redisUrl(host: Host): string;
  /** A command that runs there, as words before its own. */
  inside(host: Host): [string, ...string[]];
  /** Brings a server of this process' loopback to the loopback of both. */
  relay(port: number): Promise<void>;
  /** Packets between `host` and Redis are lost from now on, in both directions and without a word. */
  cut(host: Host): void;
  heal(host: Host): void;
  /** Processes there whose program is called so. */
  processes(host: Host, name: string): number[];
  close(): Promise<void>;
}

/** Null = works; else why no namespaces can be made here. */
export function whyNoNamespaces(): string | null {
  const name = `rc-probe-${process.pid}`;
  try {
    ip("netns", "add", name);
    ip("netns", "del", name);
    return null;
  } catch (error) {
    return `ip netns add: ${(error as Error).message.split("\n").at(-1)!}`;
  }
}

/** The caller closes it. `dir` gets Redis' data and sockets. */
export async function twoHosts(dir: string): Promise<Hosts> {
  const tag = `rc${process.pid.toString(36)}`;
  const at = (host: Host | "redis"): string => `${tag}-${host}`;
  const address = (host: Host): string => `10.77.${HOSTS.indexOf(host) + 1}.1`;
  const link = (host: Host): string => `to-${host}`;
  const children: ChildProcess[] = [];
  const closing: (() => unknown)[] = [];

  for (const name of ["redis", ...HOSTS] as const) {
    ip("netns", "add", at(name));
    closing.push(() => ip("netns", "del", at(name)));
    ip("-n", at(name), "link", "set", "lo", "up");
  }
  for (const host of HOSTS) {
    ip("link", "add", "redis", "netns", at(host), "type", "veth", "peer", "name", link(host), "netns", at("redis"));
    ip("-n", at("redis"), "addr", "add", `${address(host)}/30`, "dev", link(host));
    ip("-n", at(host), "addr", "add", `${address(host).replace(/1$/, "2")}/30`, "dev", "redis");
    ip("-n", at("redis"), "link", "set", link(host), "up");
    ip("-n", at(host), "link", "set", "redis", "up");
  }

  const socket = join(dir, "redis.sock");
  const server = [await findRedisServer(process.env["PATH"] ?? ""), "--dir", dir, "--save", "", "--appendonly", "yes"];
  const listening = ["--bind", ...HOSTS.map(address), "--unixsocket", socket, "--requirepass", PASSWORD];
  const redis = spawn("ip", ["netns", "exec", at("redis"), ...server, ...listening], { stdio: "ignore", env: {} });
  children.push(redis);
  const own = createForwarder(() => connect(socket));
  closing.unshift(own.close);
  await new Promise<void>((resolve) => own.server.listen(0, "127.0.0.1", resolve));
  const port = (own.server.address() as AddressInfo).port;
  const target: RedisTarget = { kind: "url", url: `redis://:${PASSWORD}@127.0.0.1:${port}/0` };
  if (!(await redisAnswers(target, once(redis, "exit")))) throw new Error("the redis-server of the namespaces ended at once");

  return {
    redis: target,
    redisUrl: (host) => `redis://:${PASSWORD}@${address(host)}:6379/0`,
    inside: (host) => ["ip", "netns", "exec", at(host)],
    async relay(port) {
      const path = join(dir, `relay-${port}.sock`);
      const far = createForwarder(() => connect(port, "127.0.0.1"));
      closing.unshift(far.close);
      await new Promise<void>((resolve) => far.server.listen(path, resolve));
      for (const host of HOSTS) {
        const words = ["netns", "exec", at(host), process.execPath, "test/support/relay.mjs", String(port), path];
        const child = spawn("ip", words, { stdio: ["ignore", "pipe", "inherit"] });
        children.push(child);
        await once(child.stdout, "data");
      }
    },
    cut: (host) => ip("-n", at("redis"), "link", "set", link(host), "down"),
    heal: (host) => ip("-n", at("redis"), "link", "set", link(host), "up"),
    processes: (host, name) => processesIn(at(host), name),
    async close() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }
      for (const close of closing) close();
    },
  };
}

/** Hands each connection on to another one. */
function createForwarder(target: () => Socket): { server: Server; close: () => void } {
  const open = new Set<Socket>();
  const server = createServer((from) => {
    const to = target();
    for (const one of [from, to]) {
      open.add(one);
      one.on("error", () => undefined).on("close", () => [from, to].forEach((each) => each.destroy()));
    }
    from.pipe(to).pipe(from);
  });
  const close = (): void => {
    server.close();
    for (const each of open) each.destroy();
  };
  return { server, close };
}

function ip(...words: string[]): void {
  execFileSync("ip", words, { stdio: ["ignore", "ignore", "pipe"] });
}

function processesIn(namespace: string, name: string): number[] {
  const { ino } = statSync(`/run/netns/${namespace}`);
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => linkOf(`/proc/${pid}/ns/net`) === `net:[${ino}]` && linkOf(`/proc/${pid}/exe`)?.endsWith(`/${name}`))
    .map(Number);
}

/** Null when the process is gone. */
function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
