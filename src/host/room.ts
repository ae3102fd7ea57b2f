// SPDX-License-Identifier: Apache-2.0
import { readFile, statfs } from "node:fs/promises";

/** What must be left on a host for another session to begin; 0 = not looked at. */
export interface Floors {
  disk_mb: number;
  memory_mb: number;
  pids: number;
}

/** What is left; null = this host does not tell. */
export interface Room {
  disk: { path: string; mb: number }[];
  memory_mb: number | null;
  pids: number | null;
}

const MB = 1024 * 1024;
/** A worker that held back takes work again when this much more than the floor is left, so that it does not flutter. */
const RELIEF = 1.25;

/** What is too little for another session, in words for people; null = there is enough. Pure. */
export function shortage(room: Room, floors: Floors, isHeldBack: boolean): string | null {
  const wanted = (floor: number): number => (isHeldBack ? floor * RELIEF : floor);
  for (const { path, mb } of room.disk) {
    if (floors.disk_mb > 0 && mb < wanted(floors.disk_mb)) return `disk: ${Math.floor(mb)} MB left at ${path}, ${floors.disk_mb} wanted`;
  }
  const { memory_mb, pids } = room;
  if (floors.memory_mb > 0 && memory_mb !== null && memory_mb < wanted(floors.memory_mb))
    return `memory: ${Math.floor(memory_mb)} MB left, ${floors.memory_mb} wanted`;
  if (floors.pids > 0 && pids !== null && pids < wanted(floors.pids)) return `processes: ${pids} may be started, ${floors.pids} wanted`;
  return null;
}

/** Measures. A path that is not there yet counts as its nearest ancestor would: it is left out. */
export async function readRoom(paths: readonly string[], root = "/"): Promise<Room> {
  const disk = await Promise.all(paths.map(async (path) => ({ path, mb: await freeMb(path) })));
  return {
    disk: disk.flatMap(({ path, mb }) => (mb === null ? [] : [{ path, mb }])),
    memory_mb: await freeMemoryMb(root),
    pids: await freePids(root),
  };
}

/** What is free on the file system of a path, in MB; null where that cannot be told. */
export async function freeMb(path: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(path);
    return (bavail * bsize) / MB;
  } catch {
    return null; // whoever uses it will say so
  }
}

/** Of the host, or of the cgroup (v2) that this process is confined to, whichever has less. */
async function freeMemoryMb(root: string): Promise<number | null> {
  const kb = /^MemAvailable:\s+(\d+) kB$/m.exec(await textOf(`${root}proc/meminfo`))?.[1];
  const host = kb === undefined ? null : Number(kb) / 1024;
  const [max, current] = [await numberOf(`${root}sys/fs/cgroup/memory.max`), await numberOf(`${root}sys/fs/cgroup/memory.current`)];
  if (max === null || current === null) return host;
  // Cached files count as used there, and are given back when they are wanted.
  const cached = Number(/^inactive_file (\d+)$/m.exec(await textOf(`${root}sys/fs/cgroup/memory.stat`))?.[1] ?? 0);
  const group = (max - current + cached) / MB;
  return host === null ? group : Math.min(host, group);
}

async function freePids(root: string): Promise<number | null> {
  const used = / \d+\/(\d+) /.exec(await textOf(`${root}proc/loadavg`))?.[1];
  const [pids, threads] = [await numberOf(`${root}proc/sys/kernel/pid_max`), await numberOf(`${root}proc/sys/kernel/threads-max`)];
  const host = used === undefined || pids === null || threads === null ? null : Math.min(pids, threads) - Number(used);
  const [max, current] = [await numberOf(`${root}sys/fs/cgroup/pids.max`), await numberOf(`${root}sys/fs/cgroup/pids.current`)];
  const group = max === null || current === null ? null : max - current;
  return host === null || group === null ? (host ?? group) : Math.min(host, group);
}

async function numberOf(file: string): Promise<number | null> {
  const text = (await textOf(file)).trim();
  return /^\d+$/.test(text) ? Number(text) : null; // "max" = no limit
}

/** "" when it is not there: not Linux, or no such controller. */
async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
