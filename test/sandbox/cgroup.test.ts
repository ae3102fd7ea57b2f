// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cgroupsV1 } from "../../src/sandbox/cgroup-v1.ts";
import { findCgroups, ownGroups } from "../../src/sandbox/find-cgroups.ts";

const host = await findCgroups();

describe("where this process's control groups are", () => {
  const mounts = [
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755",
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct",
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
    "41 31 0:38 / /sys/fs/cgroup/unified\\040two rw,relatime - cgroup2 cgroup2 rw",
  ].join("\n");

  it("version 1 and 2 side by side, two controllers in one hierarchy", () => {
    expect(Object.fromEntries(ownGroups(mounts, "4:memory:/a/b\n3:cpu,cpuacct:/\n1:name=systemd:/x\n0::/s/w.service\n"))).toEqual({
      memory: "/sys/fs/cgroup/memory/a/b",
      cpu: "/sys/fs/cgroup/cpu,cpuacct",
      cpuacct: "/sys/fs/cgroup/cpu,cpuacct",
      "": "/sys/fs/cgroup/unified two/s/w.service",
    });
  });

  it("in a container that sees only its own part of the hierarchy", () => {
    const part = mounts.replace("0:32 / ", "0:32 /docker/abc ");
    expect(ownGroups(part, "4:memory:/docker/abc\n").get("memory")).toBe("/sys/fs/cgroup/memory");
    expect(ownGroups(part, "4:memory:/docker/abc/sub\n").get("memory")).toBe("/sys/fs/cgroup/memory/sub");
    for (const outside of ["/docker/abcd", "/docker", "/"]) expect(ownGroups(part, `4:memory:${outside}\n`).has("memory")).toBe(false);
    expect(ownGroups(mounts, "0::/../other\n").has("")).toBe(false);
  });
});

const isV1 = host?.version === 1;
describe.skipIf(!isV1)(`control groups of version 1${isV1 ? "" : " (SKIPPED: this user may make none here)"}`, () => {
  it("a kill by a limit further up is not taken for one by the group's own limit", async () => {
    const memory = ownGroups(readFileSync("/proc/self/mountinfo", "utf8"), readFileSync("/proc/self/cgroup", "utf8")).get("memory")!;
    const outer = join(memory, `rollcall-test-${process.pid}`);
    mkdirSync(outer);
    const group = cgroupsV1(new Map([["memory", outer]])).group("inner", { memory_mb: 512 });
    try {
      writeFileSync(join(outer, "memory.limit_in_bytes"), String(64 * 1024 * 1024));
      await group.make();
      const hog = spawn("/bin/sh", ["-c", "read go; exec dd if=/dev/zero of=/dev/null bs=400M count=1"], {
        stdio: ["pipe", "ignore", "ignore"],
      });
      const ended = once(hog, "exit");
      await group.join(hog.pid!);
      hog.stdin.end("go\n");
      expect(await ended).toEqual([null, "SIGKILL"]);
      expect(group.counters()).toMatchObject({ oom_kills: 1, limit_reached: false });
    } finally {
      expect(await group.remove()).toBeNull();
      rmdirSync(outer);
    }
  });

  it("an empty group and its parent go; one with a process in it stays, and that is told", async () => {
    const group = host!.group(`test-${process.pid}`, { memory_mb: 64, pids: 10, cpus: 0.5 });
    await group.make();
    expect(group.directories).toHaveLength(4);
    const child = spawn("/bin/cat", { stdio: ["pipe", "ignore", "ignore"] });
    const ended = once(child, "exit");
    await group.join(child.pid!);
    expect(await group.remove()).toMatch(/test-\d+ could not be removed: EBUSY/);
    child.kill("SIGKILL");
    await ended;
    expect(await group.remove()).toBeNull();
    expect(group.directories.filter((directory) => existsSync(directory))).toEqual([]);
    expect(await group.remove()).toBeNull();
  });
});
