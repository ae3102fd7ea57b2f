// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { readRoom, shortage, type Floors, type Room } from "../../src/host/room.ts";
import { watchRoom } from "../../src/host/watch-room.ts";
import { tempDir } from "../support/temp-dir.ts";

const FLOORS: Floors = { disk_mb: 1_000, memory_mb: 256, pids: 100 };
const ENOUGH: Room = { disk: [{ path: "/state", mb: 5_000 }], memory_mb: 1_000, pids: 10_000 };

describe("too little room", () => {
  it.each<[what: string, less: Partial<Room>, reason: string | null]>([
    ["nothing", {}, null],
    ["disk", { disk: [...ENOUGH.disk, { path: "/tmp", mb: 999.9 }] }, "disk: 999 MB left at /tmp, 1000 wanted"],
    ["memory", { memory_mb: 255.5 }, "memory: 255 MB left, 256 wanted"],
    ["processes", { pids: 99 }, "processes: 99 may be started, 100 wanted"],
    ["what is not known", { disk: [], memory_mb: null, pids: null }, null],
  ])("%s", (_what, less, reason) => expect(shortage({ ...ENOUGH, ...less }, FLOORS, false)).toBe(reason));

  it("is over only when a quarter more than the floor is left", () => {
    const disk = (mb: number): Room => ({ ...ENOUGH, disk: [{ path: "/state", mb }] });
    expect([1_100, 1_249].map((mb) => shortage(disk(mb), FLOORS, false))).toEqual([null, null]);
    expect([1_100, 1_249, 1_250].map((mb) => shortage(disk(mb), FLOORS, true) !== null)).toEqual([true, true, false]);
  });

  it("is not looked for where the floor is 0", () => {
    const none = { disk: [{ path: "/state", mb: 0 }], memory_mb: 0, pids: 0 };
    expect(shortage(none, { disk_mb: 0, memory_mb: 0, pids: 0 }, false)).toBe(null);
  });
});

describe("what is left", () => {
  it("is measured on this host", async () => {
    const room = await readRoom([tempDir(), "/no/such/place"]);
    expect(room.disk).toEqual([{ path: expect.any(String), mb: expect.any(Number) }]);
    expect(room.memory_mb).toBeGreaterThan(0);
    expect(room.pids).toBeGreaterThan(0);
  });

  it("is that of the group of processes, where there is less than on the host; cached files are given back", async () => {
    const root = `${tempDir()}/`;
    const files = {
      "proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable:    2048000 kB\n",
      "proc/loadavg": "0.1 0.2 0.3 2/400 12345\n",
      "proc/sys/kernel/pid_max": "1000\n",
      "proc/sys/kernel/threads-max": "5000\n",
    };
    const put = (all: Record<string, string>): void => {
      for (const [path, text] of Object.entries(all)) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), text);
      }
    };
    put(files);
    expect(await readRoom([], root)).toEqual({ disk: [], memory_mb: 2_000, pids: 600 });
    const MB = 1024 * 1024;
    put({
      "sys/fs/cgroup/memory.max": `${1_000 * MB}\n`,
      "sys/fs/cgroup/memory.current": `${900 * MB}\n`,
      "sys/fs/cgroup/memory.stat": `anon 5\ninactive_file ${300 * MB}\n`,
      "sys/fs/cgroup/pids.max": "50\n",
      "sys/fs/cgroup/pids.current": "20\n",
    });
    expect(await readRoom([], root)).toEqual({ disk: [], memory_mb: 400, pids: 30 });
    put({ "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/pids.max": "max\n" });
    expect(await readRoom([], root)).toEqual({ disk: [], memory_mb: 2_000, pids: 600 });
  });

  it("is watched, and a change told once", async () => {
    const told: (string | null)[] = [];
    const floors = { disk_mb: Number.MAX_SAFE_INTEGER, memory_mb: 0, pids: 0 };
    const options = { paths: [tempDir()], floors, onChange: (reason: string | null) => told.push(reason), onError: () => undefined };
    const looks: [disks: number, heldBack: boolean][] = [];
    const onLook = ({ disk }: Room, heldBack: boolean): void => void looks.push([disk.length, heldBack]);
    const watch = await watchRoom({ ...options, onLook, intervalMs: 5 });
    expect(looks).toEqual([[1, true]]);
    expect(told).toEqual([expect.stringContaining("disk: ")]);
    floors.disk_mb = 1;
    await vi.waitFor(() => expect(told).toEqual([expect.stringContaining("disk: "), null]));
    watch.stop();
    expect(looks.at(-1)).toEqual([1, false]);
  });
});
