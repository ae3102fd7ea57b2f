// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import type { Leftover } from "../../src/host/leftover.ts";
import { processIdentity } from "../../src/host/process.ts";
import { connectRedis } from "../../src/redis/connect.ts";
import { startEmbedded, type EmbeddedOptions, type EmbeddedRedis } from "../../src/redis/embedded.ts";
import { redisLeftovers } from "../../src/redis/leftovers.ts";
import { loadOrCreateStateKey } from "../../src/redis/state-key.ts";
import { tempDir } from "../support/temp-dir.ts";

const WAIT = { timeout: 30_000, interval: 50 };

function place(): EmbeddedOptions {
  const root = realpathSync(tempDir());
  for (const name of ["out", "run"]) mkdirSync(join(root, name), { mode: 0o700 });
  return {
    outDir: join(root, "out"),
    stateRoot: join(root, "state"),
    runtimeDir: join(root, "run"),
    tmpDir: root,
    path: process.env["PATH"] ?? "",
    keeperEntry: resolve("dist/workers/redis.js"),
    log: () => undefined,
    onLost: () => undefined,
    lingerMs: 20_000,
  };
}

/** Its keeper dies as by a power cut: nobody takes anything away. */
async function killKeeper(handle: EmbeddedRedis): Promise<void> {
  const { keeperPid } = handle;
  await handle.close();
  process.kill(keeperPid, "SIGKILL");
  await vi.waitFor(() => expect(processIdentity(keeperPid)).toBeNull(), WAIT);
}

async function all(stateRoot: string): Promise<Leftover[]> {
  const found: Leftover[] = [];
  for await (const one of redisLeftovers(stateRoot)) found.push(one);
  return found;
}

it("leaves a living server alone; of a killed one takes sockets and lock, and keeps the queue for its run", async () => {
  const options = place();
  const handle = await startEmbedded(options);
  expect(await all(options.stateRoot)).toEqual([]);
  const redis = connectRedis(handle.target, { role: "command", onError: () => undefined });
  await redis.set("kept", "yes");
  redis.disconnect();
  await killKeeper(handle);
  expect(readdirSync(join(options.runtimeDir!, "rollcall")).length).toBeGreaterThan(0);

  const found = await all(options.stateRoot);
  expect(found).toMatchObject([{ kind: "embedded_redis", why: expect.stringMatching(/keeper \(process \d+\) is dead/) as string }]);
  expect(await found[0]!.remove()).toBeNull();
  expect(readdirSync(join(options.runtimeDir!, "rollcall"))).toEqual([]);
  expect(await all(options.stateRoot)).toEqual([]);

  const again = await startEmbedded({ ...options, lingerMs: 100 });
  onTestFinished(() => again.close());
  const reader = connectRedis(again.target, { role: "command", onError: () => undefined });
  expect(await reader.get("kept")).toBe("yes");
  reader.disconnect();
  await again.close();
  await vi.waitFor(() => expect(processIdentity(again.keeperPid)).toBeNull(), WAIT);
});

it("takes the whole state, key included, of an output directory that is gone; not when it came back meanwhile", async () => {
  const options = place();
  const handle = await startEmbedded(options);
  await loadOrCreateStateKey(handle.stateDir);
  await killKeeper(handle);
  renameSync(options.outDir, `${options.outDir}.moved`);
  const [found] = await all(options.stateRoot);
  expect(found).toMatchObject({ kind: "redis_state", what: handle.stateDir, why: `its output directory ${options.outDir} is gone` });
  renameSync(`${options.outDir}.moved`, options.outDir);
  expect(await found!.remove()).toBeNull();
  expect(existsSync(join(handle.stateDir, "secret.key"))).toBe(true);

  rmSync(options.outDir, { recursive: true });
  const [gone] = await all(options.stateRoot);
  expect(await gone!.remove()).toBeNull();
  expect(readdirSync(options.stateRoot)).toEqual([]);
});
