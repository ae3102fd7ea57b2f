// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { access, readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { isAlive, processIdentity } from "../host/process.ts";
import { PARENT, removeGroups, type CgroupHost } from "./cgroup.ts";
import { cgroupsV1 } from "./cgroup-v1.ts";
import { cgroupsV2 } from "./cgroup-v2.ts";

/** Controllers of version 1 that a sandbox's limits and measures need. */
const CONTROLLERS = ["memory", "cpuacct", "pids", "cpu"];

/**
 * Where this process may make control groups, proven by making one and moving a process in; null = nowhere. Of version 1
 * that is below its own group, which takes root. Of version 2 its own group is no place (it has a process: the worker),
 * so it is beside it: whoever runs the worker delegates the group above (systemd: Delegate=yes, DelegateSubgroup=worker).
 */
export async function findCgroups(): Promise<CgroupHost | null> {
  if (process.platform !== "linux") return null;
  const [mounts, groups] = await Promise.all([readFile("/proc/self/mountinfo", "utf8"), readFile("/proc/self/cgroup", "utf8")]);
  for await (const host of candidates(ownGroups(mounts, groups))) {
    if (await works(host)) return host;
  }
  return null;
}

/** Host directory of this process's group, by controller; `""` is version 2. Pure. */
export function ownGroups(mountinfo: string, cgroups: string): Map<string, string> {
  const mounted = cgroupMounts(mountinfo);
  const own = new Map<string, string>();
  for (const line of cgroups.split("\n")) {
    const [, , controllers, path] = /^(\d+):([^:]*):(\/.*)$/u.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    for (const controller of controllers.split(",")) {
      // A mount may show only a part of the hierarchy (in containers).
      const mount = mounted.find(({ root, controllers }) => controllers.includes(controller) && isBelow(path, root));
      if (mount !== undefined) own.set(controller, resolve(mount.at, `.${path.slice(mount.root === "/" ? 0 : mount.root.length)}`));
    }
  }
  return own;
}

/** Where the hierarchies of control groups are mounted. Pure. */
function cgroupMounts(mountinfo: string): { root: string; at: string; controllers: string[] }[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [left = "", right = ""] = line.split(" - ");
    const [, , , root, at] = left.split(" ");
    const [type, , options] = right.split(" ");
    return root === undefined || at === undefined || !/^cgroup2?$/u.test(type ?? "")
      ? []
      : [{ root: unescaped(root), at: unescaped(at), controllers: type === "cgroup2" ? [""] : (options ?? "").split(",") }];
  });
}

async function* candidates(own: Map<string, string>): AsyncGenerator<CgroupHost> {
  const writable = new Map<string, string>();
  for (const controller of CONTROLLERS) {
    const directory = own.get(controller);
    if (directory !== undefined && (await isWritable(directory))) writable.set(controller, directory);
  }
  if (writable.size > 0) yield cgroupsV1(writable);
  const unified = own.get("");
  if (unified === undefined) return;
  // The first can be only where the worker is in the root of all: that one may have processes and children.
  for (const base of [unified, dirname(unified)]) if (await isWritable(join(base, "cgroup.subtree_control"))) yield cgroupsV2(base);
}

/** Groups of this name that workers of this host made, whatever group each of them is in itself. */
export async function groupsCalled(name: string): Promise<string[]> {
  const mounts = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
  const found = new Set<string>();
  for (const at of cgroupMounts(mounts).map(({ at }) => at)) {
    const waiting = [at];
    for (let group = waiting.pop(); group !== undefined; group = waiting.pop()) {
      for (const child of await groupsIn(group)) {
        if (child === name && basename(group) === PARENT) found.add(join(group, child));
        else waiting.push(join(group, child));
      }
    }
  }
  return [...found];
}

/** Names of the groups right below one; none when it is gone. */
async function groupsIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Makes a group with every limit, and moves a process in that waits for its input. */
async function works(host: CgroupHost): Promise<boolean> {
  const own = processIdentity();
  const group = host.group(`trial-${own?.pid}-${own?.start_time}-${randomBytes(8).toString("hex")}`, { memory_mb: 64, cpus: 1, pids: 64 });
  const child = spawn("/bin/cat", { stdio: ["pipe", "ignore", "ignore"], env: {} });
  const ended = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
  try {
    await group.make();
    if (child.pid === undefined) return false;
    await group.join(child.pid);
    return true;
  } catch {
    return false;
  } finally {
    child.kill("SIGKILL");
    await ended;
    await group.remove();
    for (const directory of group.directories) await removeGroups(await abandonedTrials(dirname(directory)));
  }
}

/** Of workers that were killed in theirs: no sandbox's record tells of it. */
async function abandonedTrials(parent: string): Promise<string[]> {
  const own = processIdentity();
  return (await groupsIn(parent)).flatMap((name) => {
    const [, pid, start_time] = /^trial-(\d+)-(\d+)-/u.exec(name) ?? [];
    if (own === null || pid === undefined || start_time === undefined) return [];
    return isAlive({ ...own, pid: Number(pid), start_time }) ? [] : [join(parent, name)];
  });
}

async function isWritable(directory: string): Promise<boolean> {
  return access(directory, constants.W_OK).then(
    () => true,
    () => false,
  );
}

function isBelow(path: string, root: string): boolean {
  return root === "/" ? !path.startsWith("/..") : path === root || path.startsWith(`${root}/`);
}

/** mountinfo writes a space as \040. */
function unescaped(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/gu, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
