// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { connectRedis, describeRedis } from "../../src/redis/connect.ts";
import { startEmbedded, type EmbeddedOptions, type EmbeddedRedis } from "../../src/redis/embedded.ts";
import { processIdentity } from "../../src/host/process.ts";

const WAIT = { timeout: 30_000, interval: 50 };
const path = process.env["PATH"] ?? "";
const keeperEntry = resolve("dist/workers/redis.js");

let root: string;
let options: EmbeddedOptions;
const onLost = vi.fn<(error: Error) => void>();
const handles: EmbeddedRedis[] = [];
const connections: Redis[] = [];

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "rc-")));
  await mkdir(join(root, "out"));
  await mkdir(join(root, "run"));
  onLost.mockReset();
  options = {
    outDir: join(root, "out"),
    stateRoot: join(root, "state"),
    runtimeDir: join(root, "run"),
    tmpDir: root,
    path,
    keeperEntry,
    log: () => undefined,
    onLost,
    lingerMs: 200,
  };
});

/** Every test leaves nothing behind: no process, socket or lock. */
afterEach(async () => {
  for (const redis of connections.splice(0)) redis.disconnect();
  for (const handle of handles.splice(0)) await handle.close();
  await expectNothingRuns();
  await rm(root, { recursive: true });
});

async function start(changes: Partial<EmbeddedOptions> = {}): Promise<EmbeddedRedis> {
  const handle = await startEmbedded({ ...options, ...changes });
  handles.push(handle);
  return handle;
}

function connect(handle: EmbeddedRedis): Redis {
  const redis = connectRedis(handle.target, { role: "command", onError: () => undefined });
  connections.push(redis);
  return redis;
}

/** Live processes whose command line names this test's directory: keeper and Redis both do. */
async function ourProcesses(): Promise<number[]> {
  const found: number[] = [];
  for (const entry of await readdir("/proc")) {
    const commandLine = /^\d+$/.test(entry) ? await readFile(`/proc/${entry}/cmdline`, "utf8").catch(() => "") : "";
    if (commandLine.includes(root)) found.push(Number(entry));
  }
  return found;
}

async function expectNothingRuns(): Promise<void> {
  await vi.waitFor(async () => {
    expect(await ourProcesses()).toEqual([]);
    const files = await readdir(root, { recursive: true });
    expect(files.filter((file) => /\.sock$|\.lock|\.tmp$/.test(file))).toEqual([]);
  }, WAIT);
}

async function redisPid(handle: EmbeddedRedis): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await connect(handle).info("server"))?.[1]);
}

test("it starts, keeps data, and stops soon after its last user closed; nothing remains but its state", async () => {
  const first = await start();
  const second = await start();
  expect(second.keeperPid).toBe(first.keeperPid);
  await connect(first).set("kept", "yes");
  await first.close();
  expect(await connect(second).get("kept")).toBe("yes");
  await second.close();
  await expectNothingRuns();
  expect(await readdir(join(root, "run", "rollcall"))).toEqual([]);

  const again = await start();
  expect(again.stateDir).toBe(first.stateDir);
  expect(await connect(again).get("kept")).toBe("yes");
});

test("the state directory is private and outside the output directory, and so are the sockets", async () => {
  const handle = await start();
  expect(handle.stateDir).toMatch(new RegExp(`^${root}/state/[0-9a-f]{12}$`));
  expect((await stat(handle.stateDir)).mode & 0o777).toBe(0o700);
  expect((await stat(join(root, "run", "rollcall"))).mode & 0o777).toBe(0o700);
  expect(await readdir(options.outDir)).toEqual([]);
});

test("Redis is durable, never evicts, and listens on its socket only", async () => {
  const redis = connect(await start());
  const config = await redis.config("GET", "maxmemory-policy", "appendonly", "appendfsync", "port", "save");
  const values = Object.fromEntries(config.flatMap((name, index) => (index % 2 === 0 ? [[name, config[index + 1]]] : [])));
  expect(values).toEqual({ "maxmemory-policy": "noeviction", appendonly: "yes", appendfsync: "always", port: "0", save: "" });
});

test("keeper and Redis inherit no variable of the command that started them", async () => {
  vi.stubEnv("ROLLCALL_TEST_SECRET", "env-canary-1b7f");
  try {
    const handle = await start();
    for (const pid of [handle.keeperPid, await redisPid(handle)]) {
      // Redis reuses this memory for its title: what matters is that nothing of ours is there.
      const environment = await readFile(`/proc/${pid}/environ`, "utf8");
      expect(environment).not.toMatch(/env-canary|PATH=|HOME=/);
    }
  } finally {
    vi.unstubAllEnvs();
  }
});

test("kill -9 of the keeper takes Redis along; its users bring both back with the same data, and their connections go on", async () => {
  const handle = await start();
  const other = await start();
  const redis = connect(handle);
  for (let n = 0; n < 20; n += 1) await redis.rpush("acknowledged", n);
  const old = { keeper: handle.keeperPid, redis: await redisPid(handle) };
  process.kill(old.keeper, "SIGKILL");
  await vi.waitFor(() => expect([processIdentity(old.keeper), processIdentity(old.redis)]).toEqual([null, null]), WAIT);
  expect(await redis.llen("acknowledged")).toBe(20);
  await vi.waitFor(() => expect(handle.keeperPid).not.toBe(old.keeper), WAIT);
  await vi.waitFor(() => expect(other.keeperPid).toBe(handle.keeperPid), WAIT);
  expect(onLost).not.toHaveBeenCalled();
});

test("after kill -9 of keeper and user, the next start takes over lock and sockets and has the data", async () => {
  const user = await startUserProcess();
  const killed = await start();
  await connect(killed).set("kept", "yes");
  handles.splice(0); // this handle must not bring it back
  await killed.close();
  process.kill(killed.keeperPid, "SIGKILL");
  process.kill(user.pid!, "SIGKILL");
  await vi.waitFor(async () => expect(await ourProcesses()).toEqual([]), WAIT);
  expect(await readdir(killed.stateDir)).toContain("keeper.lock");
  expect(await connect(await start()).get("kept")).toBe("yes");
});

test("kill -9 of its only user stops it within seconds", async () => {
  const user = await startUserProcess();
  expect((await ourProcesses()).length).toBeGreaterThanOrEqual(2);
  process.kill(user.pid!, "SIGKILL");
  await expectNothingRuns();
});

test("a Redis that dies is started again by its keeper, with the same data", async () => {
  const handle = await start();
  const redis = connect(handle);
  await redis.set("kept", "yes");
  const keeper = handle.keeperPid;
  process.kill(await redisPid(handle), "SIGKILL");
  expect(await redis.get("kept")).toBe("yes");
  expect(handle.keeperPid).toBe(keeper);
});

test("a Redis that keeps dying makes its keeper give up, and its users bring back both", async () => {
  const handle = await start();
  const redis = connect(handle);
  await redis.set("kept", "yes");
  const keeper = handle.keeperPid;
  for (let deaths = 0; deaths < 3; deaths += 1) process.kill(await redisPid(handle), "SIGKILL");
  await vi.waitFor(() => expect(handle.keeperPid).not.toBe(keeper), WAIT);
  expect(await redis.get("kept")).toBe("yes");
  expect(onLost).not.toHaveBeenCalled();
});

test("five starters at once get one keeper and one Redis", async () => {
  const all = await Promise.all([start(), start(), start(), start(), start()]);
  expect(new Set(all.map((handle) => handle.keeperPid)).size).toBe(1);
  expect(new Set(await Promise.all(all.map(redisPid))).size).toBe(1);
  await vi.waitFor(async () => expect(await ourProcesses()).toHaveLength(2), WAIT);
});

test("starters whose runtime directories differ still meet", async () => {
  await mkdir(join(root, "other"));
  const [first, second] = await Promise.all([start(), start({ runtimeDir: join(root, "other") })]);
  expect(second?.keeperPid).toBe(first?.keeperPid);
  expect(describeRedis(second.target)).toBe(describeRedis(first.target));
});

test("after the keeper was told to end, its users' connections come back also when somebody with another runtime directory starts the next", async () => {
  await mkdir(join(root, "other"));
  const handle = await start();
  const redis = connect(handle);
  await redis.set("kept", "yes");
  const keeper = handle.keeperPid;
  process.kill(keeper, "SIGTERM");
  await Promise.all([start({ runtimeDir: join(root, "other") }), start({ runtimeDir: join(root, "other") })]);
  await vi.waitFor(() => expect(handle.keeperPid).not.toBe(keeper), WAIT);
  expect(await redis.get("kept")).toBe("yes");
});

test("a start during the shutdown waits for it and goes on with the data", async () => {
  for (let round = 0; round < 5; round += 1) {
    const handle = await start({ lingerMs: 0 });
    await connect(handle).incr("rounds");
    await handle.close();
  }
  expect(await connect(await start()).get("rounds")).toBe("5");
});

test("without setpriv, a Redis that outlived its keeper is shut down by the next keeper before it starts its own", async () => {
  const bin = join(root, "bin");
  await mkdir(bin);
  // A PATH with a redis-server and no setpriv.
  await writeFile(join(bin, "redis-server"), `#!/bin/sh\nexec "$(PATH='${path}' command -v redis-server)" "$@"\n`, { mode: 0o755 });
  const handle = await start({ path: bin });
  const redis = connect(handle);
  await redis.set("kept", "yes");
  const orphan = await redisPid(handle);
  process.kill(handle.keeperPid, "SIGKILL");
  await vi.waitFor(() => expect(processIdentity(orphan)).toBeNull(), WAIT);
  await vi.waitFor(async () => expect(await redis.get("kept")).toBe("yes"), WAIT);
  expect(await redisPid(handle)).not.toBe(orphan);
});

test("a Redis that cannot start is reported with its own last lines", async () => {
  const handle = await start();
  await connect(handle).set("a", "1");
  await handle.close();
  await expectNothingRuns();
  await writeFile(join(handle.stateDir, "appendonlydir", "appendonly.aof.manifest"), "nonsense\n");
  const attempt = await start().catch((error: unknown) => error);
  expect(attempt).toMatchObject({ code: "redis_start_failed", message: expect.stringMatching(/Invalid AOF manifest|AOF/) });
  expect(attempt).toMatchObject({ message: expect.stringContaining("keeper.log") });
});

test("users are told once when Redis is lost and cannot be brought back", async () => {
  const handle = await start();
  await connect(handle).set("a", "1");
  await writeFile(join(handle.stateDir, "appendonlydir", "appendonly.aof.manifest"), "nonsense\n");
  process.kill(handle.keeperPid, "SIGKILL");
  await vi.waitFor(() => expect(onLost).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "redis_start_failed" })), WAIT);
});

test("no Redis on PATH: the error names the install line and REDIS_URL", async () => {
  await expect(start({ path: join(root, "run") })).rejects.toMatchObject({
    code: "redis_missing",
    message: expect.stringMatching(/Install one: .*(apt-get|dnf|apk|pacman|zypper|brew|package).*REDIS_URL/),
  });
});

test("a socket path that is too long is refused before anything starts", async () => {
  const runtimeDir = join(root, "x".repeat(90));
  await mkdir(runtimeDir);
  await expect(start({ runtimeDir })).rejects.toMatchObject({
    code: "redis_socket_path_too_long",
    message: expect.stringContaining("107"),
  });
});

test("a state root inside the output directory is refused, and not made", async () => {
  await expect(start({ stateRoot: join(options.outDir, "state") })).rejects.toMatchObject({ code: "state_dir_inside_out" });
  expect(await readdir(options.outDir)).toEqual([]);
});

test("an output directory that does not exist is refused", async () => {
  await expect(start({ outDir: join(root, "nowhere") })).rejects.toMatchObject({ code: "out_dir_missing" });
});

test("without a usable runtime directory the sockets go to a private directory under the temp directory; an open one is refused", async () => {
  const handle = await start({ runtimeDir: join(root, "gone") });
  const socketDir = join(root, `rollcall-${process.getuid?.()}`);
  expect(handle.target).toMatchObject({ path: expect.stringMatching(new RegExp(`^${socketDir}/`)) });
  await handle.close();
  await expectNothingRuns();
  await chmod(socketDir, 0o755);
  await expect(start({ runtimeDir: undefined })).rejects.toMatchObject({ code: "directory_not_private" });
});

/** A process that uses the embedded Redis and does nothing else; ready when this returns. */
async function startUserProcess(): Promise<ReturnType<typeof spawn>> {
  const { log: _log, onLost: _onLost, ...plain } = options;
  const script = `
    import { startEmbedded } from ${JSON.stringify(pathToFileURL(resolve("dist/src/redis/embedded.js")).href)};
    await startEmbedded({ ...${JSON.stringify(plain)}, log: () => {}, onLost: () => {} });
    console.log("started");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return child;
}
