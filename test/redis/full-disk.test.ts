// SPDX-License-Identifier: Apache-2.0
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { mountSmallDisk, type SmallDisk } from "../../scripts/chaos/disk.ts";
import { processIdentity } from "../../src/host/process.ts";
import { connectRedis } from "../../src/redis/connect.ts";
import { startEmbedded, type EmbeddedRedis } from "../../src/redis/embedded.ts";
import { readSockets } from "../../src/redis/keeper-start.ts";
import { stateFiles } from "../../src/redis/paths.ts";
import { suiteDir } from "../support/suite-dir.ts";

const WAIT = { timeout: 50_000, interval: 50 };
const dir = suiteDir();
let runs = 0;
const probe = await mountSmallDisk(join(dir, "probe"), 1);
await probe.disk?.close();
const skipped = probe.disk === null ? ` [NOT RUN: ${probe.why}]` : "";

/** The first lines that a keeper says, or as many as there are. */
async function heard(keeperSocket: string, lines: number): Promise<string> {
  const socket = connect(keeperSocket).setEncoding("utf8");
  let said = "";
  for await (const text of socket) {
    said += text as string;
    if (said.split("\n").length > lines) break;
  }
  return said;
}

describe.skipIf(probe.disk === null)(`the embedded Redis on a disk that fills up${skipped}`, () => {
  const onLost = vi.fn<(error: Error) => void>();
  let disk: SmallDisk;
  let handle: EmbeddedRedis;

  beforeEach(async () => {
    const root = join(dir, `${++runs}`);
    for (const name of ["out", "run"]) mkdirSync(join(root, name), { recursive: true });
    const mounted = await mountSmallDisk(join(root, "state"), 32);
    if (mounted.disk === null) throw new Error(mounted.why);
    disk = mounted.disk;
    onLost.mockReset();
    handle = await startEmbedded({
      outDir: join(root, "out"),
      stateRoot: join(root, "state"),
      runtimeDir: join(root, "run"),
      tmpDir: root,
      path: process.env["PATH"] ?? "",
      keeperEntry: resolve("dist/workers/redis.js"),
      log: () => undefined,
      onLost,
      lingerMs: 200,
    });
  });
  afterEach(async () => {
    const { keeperPid } = handle;
    await handle.close();
    await vi.waitFor(() => expect(processIdentity(keeperPid)).toBeNull(), WAIT);
    await disk.close();
  });

  it("ends when nobody waits for it any more", async () => {
    const redis = connectRedis(handle.target, { role: "blocking", onError: () => undefined });
    disk.fill();
    redis.set("large", "x".repeat(100_000)).catch(() => undefined);
    await vi.waitFor(() => expect(redis.status).not.toBe("ready"), WAIT);
    redis.disconnect(); // and the hooks wait for the keeper's end
  });

  it("waits for room and goes on with all that it had acknowledged; whoever uses it waits too", async () => {
    const redis = connectRedis(handle.target, { role: "blocking", onError: () => undefined });
    try {
      const keeper = handle.keeperPid;
      for (let n = 0; n < 20; n++) await redis.rpush("acknowledged", n);
      disk.fill();
      let answered = false;
      const writing = (async () => {
        // Some writes still fit into the last page.
        for (let n = 0; n < 50; n++) await redis.rpush("later", "x".repeat(1_000));
        answered = true;
      })();
      const log = (): Promise<string> => readFile(stateFiles(handle.stateDir).log, "utf8");
      await vi.waitFor(() => expect(redis.status).not.toBe("ready"), WAIT);
      // The keeper tells whoever asks once a second: it neither gives up nor starts what would end at once.
      expect(await heard((await readSockets(handle.stateDir))!.keeper, 4)).toBe("starting\n".repeat(4));
      expect(answered).toBe(false);
      expect(await log()).toContain("ready to accept connections");

      disk.empty();
      await writing;
      expect(await redis.llen("acknowledged")).toBe(20);
      expect(await redis.llen("later")).toBeGreaterThanOrEqual(50);
      expect(handle.keeperPid).toBe(keeper);
      expect(onLost).not.toHaveBeenCalled();
    } finally {
      redis.disconnect();
    }
  });
});
