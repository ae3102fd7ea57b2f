// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { mountSmallDisk, type SmallDisk } from "../../scripts/chaos/disk.ts";
import { runActivation } from "../../src/activation/run.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import type { CodexBinary } from "../../src/codex/binary.ts";
import { resultSchema } from "../../src/contract/result.ts";
import { startActivationWorker } from "../../src/queue/activation-worker.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import type { QueueSettings } from "../../src/queue/settings.ts";
import { startSentinel } from "../../src/queue/sentinel.ts";
import { createHostProvider } from "../../src/sandbox/host.ts";
import { attemptRunner } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { activationOf, startRig, TEST_KEYS, workerFacts, type Rig } from "./rig.ts";
import { profileFor } from "../../src/codex/profile.ts";

const WAIT = { timeout: 100_000, interval: 50 };
const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));
const dir = suiteDir();
let runs = 0;

const probe = await mountSmallDisk(join(dir, "probe"), 1);
await probe.disk?.close();
const skipped = probe.disk === null ? ` [NOT RUN: ${probe.why}]` : "";

let rig: Rig;
let disk: SmallDisk;
let place: string;
const closing: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  if (probe.disk === null) return;
  rig = await startRig({ unable_recheck_ms: 300 });
  place = join(dir, `disk-${++runs}`);
  const mounted = await mountSmallDisk(place, 8);
  if (mounted.disk === null) throw new Error(mounted.why);
  disk = mounted.disk;
  closing.push(
    () => disk.close(),
    () => rig.close(),
  );
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function fake(entry: string): CodexBinary {
  return {
    version: "0.144.4",
    profile: profileFor("0.144.4"),
    key: `fake-${entry}`,
    hostDir: FAKES,
    entry,
    only: [entry],
    tools: null,
    bwrap: null,
  };
}

/** A real worker and sentinel whose store, or whose sandboxes, are on the small disk. */
async function work(entry: string, small: "store" | "sandboxes", settings: Partial<QueueSettings> = {}) {
  const root = join(dir, `run-${runs}`);
  mkdirSync(root);
  const storeRoot = small === "store" ? place : join(root, "artifacts");
  mkdirSync(storeRoot, { recursive: true });
  const store = await openDirectoryStore(storeRoot);
  const providers = { host: createHostProvider({ stateDir: join(small === "sandboxes" ? place : root, "state") }) };
  const { ports, logLines } = await attemptRunner(root, fake(entry), { store, providers, defaultProvider: "host" });
  const sentinel = await startSentinel({ queues: rig.open(), store, log: ports.log });
  const worker = await startActivationWorker({
    queues: { ...rig.open(), settings: { ...rig.queues.settings, ...settings } },
    keys: TEST_KEYS,
    concurrency: 4,
    store,
    run: (claim) => runActivation(claim, ports),
    facts: { ...workerFacts(store.id), key_ids: TEST_KEYS.map(({ id }) => id) },
    log: ports.log,
  });
  closing.push(
    () => sentinel.close({ graceMs: 3_000 }),
    () => worker.close({ graceMs: 3_000 }),
  );
  return { store, storeRoot, logLines };
}

const add = (ids: string[], facts: Record<string, unknown> = {}) =>
  enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id, facts)),
    { keys: TEST_KEYS },
  );

/** Every document below a store that stands under its final name is whole. */
function expectNothingTorn(storeRoot: string): void {
  for (const entry of readdirSync(storeRoot, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".json") || entry.name.startsWith(".")) continue;
    const document = JSON.parse(readFileSync(join(entry.parentPath, entry.name), "utf8")) as unknown;
    if (entry.name === "result.json") resultSchema.parse(document);
  }
}

describe.skipIf(probe.disk === null)(`a full disk${skipped}`, { timeout: 120_000 }, () => {
  it("of the artifacts: what cannot be kept begins again, uncharged, and ends well when there is room", async () => {
    const { store, storeRoot, logLines } = await work("reads-nothing", "store", { max_faults: 1_000 }); // as if the disk were full for seconds only
    await add(["act-before"]);
    await vi.waitFor(async () => expect((await store.readCommit("act-before"))?.status).toBe("completed"), WAIT);
    disk.fill();
    await add(["act-a", "act-b"]);
    const faults = (): string[] => logLines.filter((line) => line.includes("could not be handled"));
    await vi.waitFor(() => expect(faults().length).toBeGreaterThan(1), WAIT);
    expect(await store.readCommit("act-a")).toBeNull();
    expect(faults()[0]).toContain(`the disk of ${place} is full`);
    disk.empty();
    for (const id of ["act-a", "act-b"]) {
      await vi.waitFor(async () => expect((await store.readCommit(id))?.status).toBe("completed"), WAIT);
      // What could not be saved was not charged; an attempt that failed just before there was room again is.
      expect((await store.readCommit(id))!.attempts.length).toBeLessThanOrEqual(2);
    }
    expectNothingTorn(storeRoot);
  });

  it("of the artifacts that stays full ends an activation as failed as soon as it can be told, and names the disk", async () => {
    const { store, storeRoot, logLines } = await work("reads-nothing", "store");
    disk.fill();
    await add(["act-a"]);
    await vi.waitFor(() => expect(logLines.some((line) => line.includes("could not be recorded"))).toBe(true), WAIT);
    expect(existsSync(join(storeRoot, "act-a/result.json"))).toBe(false);
    await expect(rig.queues.redis.ping()).resolves.toBe("PONG");
    disk.empty();
    const result = await vi.waitFor(async () => {
      const committed = await store.readCommit("act-a");
      expect(committed).not.toBeNull();
      return committed!;
    }, WAIT);
    expect(result).toMatchObject({ status: "failed", cause_class: "infrastructure", failure: { cause_code: "disk_full" } });
    expect(result.failure!.failure_reason).toContain(`the disk of ${place} is full`);
    await add(["act-after"]);
    await vi.waitFor(async () => expect((await store.readCommit("act-after"))?.status).toBe("completed"), WAIT);
    expectNothingTorn(storeRoot);
  });

  it("that a session's own evidence fills fails that session, which leaves the room to others", async () => {
    const { store, storeRoot } = await work("floods", "store");
    await add(["act-loud"], { max_attempts: 2 });
    await add(["act-quiet"], { input: "be quiet" });
    const ended = async (id: string) =>
      vi.waitFor(async () => {
        const committed = await store.readCommit(id);
        expect(committed).not.toBeNull();
        return committed!;
      }, WAIT);
    const loud = await ended("act-loud");
    expect(loud).toMatchObject({
      status: "failed",
      failure: { cause_code: "disk_full" },
      attempts: [{ charged: true }, { charged: true }],
    });
    expect(loud.failure!.failure_reason).toContain(place);
    expect(await ended("act-quiet")).toMatchObject({ status: "completed" });
    expectNothingTorn(storeRoot);
  });

  it("of the sandboxes fails the attempt, which is tried again; its reason names the disk", async () => {
    const { store } = await work("reads-nothing", "sandboxes");
    disk.fill();
    await add(["act-a"], { max_attempts: 2 });
    await add(["act-late"], { max_attempts: 100 });
    const result = await vi.waitFor(async () => {
      const committed = await store.readCommit("act-a");
      expect(committed).not.toBeNull();
      return committed!;
    }, WAIT);
    expect(result).toMatchObject({ status: "failed", failure: { failure_kind: "transport_local_resource", cause_code: "disk_full" } });
    expect(result.failure!.failure_reason).toContain(`the disk of ${join(place, "state")} is full (ENOSPC`);
    disk.empty();
    await vi.waitFor(async () => expect((await store.readCommit("act-late"))?.status).toBe("completed"), WAIT);
    await vi.waitFor(
      () => expect(readdirSync(join(place, "state"), { recursive: true, withFileTypes: true }).filter((e) => e.isFile())).toEqual([]),
      WAIT,
    );
  });
});
