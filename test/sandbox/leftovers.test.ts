// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { Writable } from "node:stream";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import type { Leftover } from "../../src/host/leftover.ts";
import { processIdentity, type ProcessIdentity } from "../../src/host/process.ts";
import { createLogger } from "../../src/logging.ts";
import { LiveSecrets } from "../../src/redact/index.ts";
import { findCgroups } from "../../src/sandbox/find-cgroups.ts";
import { sandboxLeftovers } from "../../src/sandbox/leftovers.ts";
import { writeOwnerRecord } from "../../src/sandbox/owner-record.ts";
import { startReaper, type Removed } from "../../src/sandbox/reaper.ts";
import { tempDir } from "../support/temp-dir.ts";

const own = processIdentity()!;
const isRoot = process.getuid?.() === 0;
const cgroups = await findCgroups();
const WAIT = { timeout: 20_000, interval: 20 };

/** A process of this boot that is dead. */
function deadProcess(): ProcessIdentity {
  return { ...own, pid: spawnSync("/bin/true").pid, start_time: "1" };
}

/** A sandbox as a worker leaves it: its record and its directory, with a secret in it. */
async function leaveSandbox(stateDir: string, id: string, owner: ProcessIdentity): Promise<string> {
  const mark = "0123456789abcdef";
  const directory = join(stateDir, "sandboxes", `${id}.${mark}`);
  mkdirSync(join(directory, "home", ".codex"), { recursive: true });
  writeFileSync(join(directory, "home", ".codex", "config.toml"), 'Authorization = "Bearer a-secret"');
  const facts = { activation_id: `act-${id}`, attempt: 0, process: owner };
  await writeOwnerRecord(stateDir, { id, provider: "host", owner: facts, directory, mark, uid: null });
  return directory;
}

async function all(leftovers: AsyncIterable<Leftover>): Promise<Leftover[]> {
  const found: Leftover[] = [];
  for await (const one of leftovers) found.push(one);
  return found;
}

it("finds the sandboxes of dead workers, those of before a reboot too, and never one of a worker that lives", async () => {
  const stateDir = tempDir();
  const living = await leaveSandbox(stateDir, "living", own);
  // After a reboot the same pid may live, even with the same start time: its boot is another one.
  const rebooted = await leaveSandbox(stateDir, "rebooted", { ...own, boot_id: "another-boot" });
  const killed = await leaveSandbox(stateDir, "killed", deadProcess());
  const recycled = await leaveSandbox(stateDir, "recycled", { ...own, start_time: "1" });
  const elsewhere = await leaveSandbox(stateDir, "elsewhere", { ...deadProcess(), host: "another-host" });

  const found = await all(sandboxLeftovers(stateDir, null));
  expect(found.map(({ what }) => what).sort()).toEqual([rebooted, killed, recycled].sort());
  expect(found.map(({ why }) => why)).toContainEqual(expect.stringContaining("act-killed, attempt 0"));
  for (const { remove } of found) expect(await remove()).toBeNull();
  expect([rebooted, killed, recycled].filter(existsSync)).toEqual([]);
  expect([living, elsewhere].every(existsSync)).toBe(true);
  expect(
    readdirSync(join(stateDir, "sandboxes"))
      .filter((name) => name.endsWith(".json"))
      .sort(),
  ).toEqual(["elsewhere.json", "living.json"]);
  expect(await all(sandboxLeftovers(stateDir, null))).toEqual([]);
});

it("finds temporary files that a killed process never finished, when they are old", async () => {
  const stateDir = tempDir();
  mkdirSync(join(stateDir, "sandboxes"));
  const [old, fresh] = [".a.json.0011.tmp", ".b.json.0022.tmp"].map((name) => join(stateDir, "sandboxes", name)) as [string, string];
  for (const path of [old, fresh]) writeFileSync(path, '{"half');
  utimesSync(old, new Date(0), new Date(0));
  const found = await all(sandboxLeftovers(stateDir, null));
  expect(found.map(({ what }) => what)).toEqual([old]);
  expect(await found[0]!.remove()).toBeNull();
  expect(existsSync(fresh)).toBe(true);
});

it("takes a half at once when the process that wrote it is dead", async () => {
  const stateDir = tempDir();
  mkdirSync(join(stateDir, "sandboxes"));
  const half = (pid: number): string => join(stateDir, "sandboxes", `.a.json.${pid}-0123456789ab.tmp`);
  const dead = deadProcess().pid;
  for (const pid of [dead, process.pid]) writeFileSync(half(pid), '{"half');
  expect((await all(sandboxLeftovers(stateDir, null))).map(({ what }) => what)).toEqual([half(dead)]);
});

it("tries a sandbox whose removal failed again, each time and at the stop, until it is gone", async () => {
  const [stubborn, late] = [
    ["its directory is busy", null],
    ["busy", "busy", null],
  ].map((errors, index) => ({ id: `box-${index}`, destroy: () => Promise.resolve({ cleanup_error: errors.shift() ?? null }) }));
  const told: string[] = [];
  const abandoned = new Set([stubborn!]);
  const reaper = await startReaper({
    stateDir: tempDir(),
    sharedRoot: null,
    abandoned,
    log: createLogger({ level: "silent", secrets: new LiveSecrets(), destination: process.stderr }),
    everyMs: 30,
    onRemoved: ({ kind, done }) => told.push(`${kind} ${done}`),
  });
  await vi.waitFor(() => expect(abandoned.size).toBe(0));
  abandoned.add(late!);
  await vi.waitFor(() => expect(abandoned.size).toBe(0));
  const last = { id: "box-last", destroy: () => Promise.resolve({ cleanup_error: null }) };
  abandoned.add(last);
  await reaper.stop();
  expect(abandoned.size).toBe(0);
  expect(told).toEqual([false, true, false, false, true, true].map((done) => `abandoned ${done}`));
});

it.runIf(isRoot)("finds uid locks and directories that root workers shared and nobody holds, and leaves those that are held", async () => {
  const { root, dead, live } = leaveShared();
  const found = await all(sandboxLeftovers(tempDir(), root));
  expect(found.map(({ kind }) => kind)).toEqual(["sandbox_directory", "uid_lock", "temporary_file", "runtime_build"]);
  expect(found[2]!.what).toContain(`/${dead}.`);
  for (const { remove } of found) expect(await remove()).toBeNull();
  expect(readdirSync(join(root, "sandboxes"))).toEqual([`box-${live}`]);
  expect(readdirSync(join(root, "uids"))).toEqual([String(live), `${live}.${own.pid}.0a0b0c0d0e0f`]);
  expect(readdirSync(join(root, "runtimes"))).toEqual(["codex-0.0.0-abc"]);
});

it.runIf(isRoot)(
  "a worker that starts takes away what others were killed over before their record was written, or after it was lost",
  async () => {
    const { root, live } = leaveShared();
    const log = createLogger({ level: "silent", secrets: new LiveSecrets(), destination: process.stderr });
    const reaper = await startReaper({ stateDir: tempDir(), sharedRoot: root, abandoned: new Set(), log });
    await reaper.stop();
    expect(readdirSync(join(root, "sandboxes"))).toEqual([`box-${live}`]);
    expect(readdirSync(join(root, "uids"))).toEqual([String(live), `${live}.${own.pid}.0a0b0c0d0e0f`]);
  },
);

it.runIf(cgroups !== null && isRoot)("the control group of a directory without a record goes with it", async () => {
  const root = tempDir();
  for (const name of ["sandboxes", "uids"]) mkdirSync(join(root, name));
  const name = `box.${randomBytes(8).toString("hex")}`;
  mkdirSync(join(root, "sandboxes", name));
  chownSync(join(root, "sandboxes", name), 1_900_009_003, 1_900_009_003);
  const group = cgroups!.group(name, { memory_mb: 64 });
  await group.make();
  expect(group.directories.filter(existsSync)).toHaveLength(group.directories.length);
  for (const { remove } of await all(sandboxLeftovers(tempDir(), root))) expect(await remove()).toBeNull();
  expect(group.directories.filter(existsSync)).toEqual([]);
  expect(readdirSync(join(root, "sandboxes"))).toEqual([]);
});

it.runIf(cgroups !== null)("a worker that tries its control groups removes the trials of workers that were killed in theirs", async () => {
  const killed = deadProcess();
  const trials = [killed, own].map(({ pid, start_time }) =>
    cgroups!.group(`trial-${pid}-${start_time}-0123456789abcdef`, { memory_mb: 64 }),
  );
  for (const trial of trials) await trial.make();
  await findCgroups();
  expect(trials.map(({ directories }) => directories.filter(existsSync).length)).toEqual([0, trials[1]!.directories.length]);
  await trials[1]!.remove();
});

/** What all root workers share, with a lock and a directory of a dead worker's and of this process's, and halves of locks. */
function leaveShared(): { root: string; dead: number; live: number } {
  const root = tempDir();
  for (const name of ["sandboxes", "uids", "runtimes"]) mkdirSync(join(root, name));
  const [dead, live] = [1_900_009_001, 1_900_009_002];
  const killed = deadProcess();
  for (const [uid, owner] of [
    [dead, killed],
    [live, own],
  ] as const) {
    writeFileSync(join(root, "uids", String(uid)), JSON.stringify(owner));
    writeFileSync(join(root, "uids", `${uid}.${owner.pid}.0a0b0c0d0e0f`), JSON.stringify(owner));
    mkdirSync(join(root, "sandboxes", `box-${uid}`));
    chownSync(join(root, "sandboxes", `box-${uid}`), uid, uid);
  }
  mkdirSync(join(root, "runtimes", ".building.4194305.1.0a0b0c0d"));
  mkdirSync(join(root, "runtimes", "codex-0.0.0-abc"));
  return { root, dead, live };
}

it("a worker's reaper removes what is there before it takes work, then what dies later, and outlives a fault", async () => {
  const stateDir = tempDir();
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const first = await leaveSandbox(stateDir, "first", deadProcess());
  const log = createLogger({ level: "info", secrets: new LiveSecrets(), destination });
  const removed: Removed[] = [];
  const reaper = await startReaper({
    stateDir,
    sharedRoot: null,
    abandoned: new Set(),
    log,
    everyMs: 30,
    onRemoved: (what) => removed.push(what),
  });
  onTestFinished(() => reaper.stop());
  expect(existsSync(first)).toBe(false);

  // A directory that is no directory: a look fails, and is told; the next ones go on.
  const records = join(stateDir, "sandboxes");
  spawnSync("/bin/mv", [records, `${records}.aside`]);
  writeFileSync(records, "");
  await vi.waitFor(() => expect(lines.join("")).toContain("could not be looked for"), WAIT);
  spawnSync("/bin/rm", [records]);
  spawnSync("/bin/mv", [`${records}.aside`, records]);
  const second = await leaveSandbox(stateDir, "second", deadProcess());
  const told = (): string[] => lines.filter((line) => line.includes("removed the sandbox of a worker that was killed"));
  await vi.waitFor(() => expect(told()).toHaveLength(2), WAIT);
  expect(existsSync(second)).toBe(false);
  await reaper.stop();
  expect(removed).toEqual([first, second].map(() => ({ kind: "sandbox", done: true })));
  const third = await leaveSandbox(stateDir, "third", deadProcess());
  const waited = performance.now();
  await vi.waitUntil(() => performance.now() - waited > 200, WAIT);
  expect(existsSync(third)).toBe(true);
});
