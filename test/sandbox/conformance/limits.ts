// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { listOwnerRecords } from "../../../src/sandbox/owner-record.ts";
import { factsOf } from "../../../src/sandbox/processes.ts";
import { run, sh, start, until, type Check, type Context } from "./setting.ts";

const MB = 1024 * 1024;
/** One process that needs more than any limit here, and no more than a machine has when no limit holds. */
const HOG = "dd if=/dev/zero of=/dev/null bs=400M count=1";

/** What control groups limit and measure. All for bubblewrap, where the worker may make groups. */
export const limitChecks: Check[] = [
  {
    title: "memory: a child above the limit is killed, the command goes on, and the kill is told",
    run: async (context) => {
      const sandbox = await context.open({ limits: { memory_mb: 64 } });
      const { exit, stdout } = await run(sandbox, ["/bin/sh", "-c", `${HOG}; echo "hog $?"`]);
      assert.deepEqual([exit, stdout], [{ started: true, code: 0, signal: null }, "hog 137\n"]);
      const { oom_killed, memory_limit_reached, peak_memory_bytes } = sandbox.usage();
      assert.deepEqual([oom_killed, memory_limit_reached], [true, true]);
      assert.ok(peak_memory_bytes !== null && peak_memory_bytes > 60 * MB && peak_memory_bytes <= 64 * MB, String(peak_memory_bytes));
      assert.deepEqual(await sandbox.destroy(), { cleanup_error: null });
      assert.deepEqual([sandbox.usage().oom_killed, sandbox.usage().peak_memory_bytes], [true, peak_memory_bytes]); // as it was at the end
    },
  },
  {
    title: "memory: a command above the limit is killed itself; the next one in the same sandbox is not blamed for that",
    run: async (context) => {
      const sandbox = await context.open({ limits: { memory_mb: 64 } });
      const { exit } = await run(sandbox, ["/bin/sh", "-c", `exec ${HOG}`]);
      assert.deepEqual([exit, sandbox.usage().oom_killed], [{ started: true, code: null, signal: "SIGKILL" }, true]);
      await run(sandbox, ["/bin/true"]);
      assert.equal(sandbox.usage().oom_killed, false);
    },
  },
  {
    title: "memory: what fills /dev/shm counts, although no process has it",
    run: async (context) => {
      const sandbox = await context.open({ limits: { memory_mb: 32 } });
      await sh(sandbox, "head -c 60000000 /dev/zero >/dev/shm/big");
      assert.equal(sandbox.usage().oom_killed, true);
    },
  },
  {
    title: "without a limit everything is measured all the same, also of a short command and of children",
    run: async (context) => {
      const sandbox = await context.open();
      assert.equal((await run(sandbox, ["/bin/true"])).exit.started, true);
      const short = sandbox.usage();
      assert.ok((short.cpu_ms ?? 0) > 0 && (short.peak_memory_bytes ?? 0) > 0, JSON.stringify(short));
      await sh(sandbox, "(head -c 150000000 /dev/zero | tail -c 150000000 >/dev/null)");
      const { peak_memory_bytes, oom_killed, memory_limit_reached } = sandbox.usage();
      assert.ok(peak_memory_bytes !== null && peak_memory_bytes > 140 * MB && peak_memory_bytes < 250 * MB, String(peak_memory_bytes));
      assert.deepEqual([oom_killed, memory_limit_reached], [false, false]);
    },
  },
  {
    title: "cpus: the kernel holds a busy loop back",
    run: async (context) => {
      const sandbox = await context.open({ limits: { cpus: 0.1 } });
      const running = start(sandbox, ["/bin/sh", "-c", "while :; do :; done"]);
      running.stdin.end();
      const groups = await groupsOf(context, sandbox.id);
      await until(() => groups.some((group) => throttled(group) > 0), "it is throttled", 20_000);
      running.stop({ graceMs: 0 });
      await running.exited;
    },
  },
  {
    title: "pids: a fork beyond the limit fails, and nobody else has less",
    run: async (context) => {
      const [sandbox, other] = [await context.open({ limits: { pids: 20 } }), await context.open({ limits: { pids: 60 } })];
      const forks = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); echo $i; done; echo all; kill $(jobs -p)";
      assert.ok(!(await sh(sandbox, forks)).includes("all"));
      assert.ok((await sh(other, forks)).includes("all"));
    },
  },
  {
    title: "nothing inside can see, mount or write its control group",
    run: async (context) => {
      const sandbox = await context.open({ limits: { memory_mb: 64, pids: 40 } });
      const tries = [
        "find / -xdev \\( -name cgroup.procs -o -name tasks -o -name 'memory.*max' \\) -not -path '/proc/*' 2>/dev/null",
        "grep cgroup /proc/self/mounts",
        "test -e /sys && echo SYS",
        "mkdir /tmp/c && mount -t cgroup2 none /tmp/c 2>/dev/null && echo MOUNTED 2",
        "mount -t cgroup -o memory none /tmp/c 2>/dev/null && echo MOUNTED 1",
        "grep -v ':/$' /proc/self/cgroup",
        "echo end",
      ];
      // The groups it was not put into (e.g. devices) are the worker's: their names may show.
      const seen = (await sh(sandbox, tries.join("; "))).replaceAll(/^\d+:(?!.*(memory|pids|cpu\b|cpuacct)).*\n/gmu, "");
      assert.equal(seen, "end\n");
    },
  },
  {
    title: "the sandbox's user cannot write its control group from outside either",
    needsRoot: true,
    run: async (context) => {
      const sandbox = await context.open({ limits: { memory_mb: 64, pids: 40, cpus: 1 } });
      const groups = await groupsOf(context, sandbox.id);
      const { uid } = statSync(sandbox.outside.workdir);
      const files = groups.flatMap((group) => [group, ...readdirSync(group).map((name) => join(group, name))]);
      const test = 'for file; do test -w "$file" && case $file in *cgroup.event_control) ;; *) echo "$file";; esac; done; echo end';
      assert.equal(spawnSync("/bin/sh", ["-c", test, "sh", ...files], { uid, gid: uid }).stdout.toString(), "end\n");
      assert.ok(files.length > 20);
    },
  },
  {
    title: "a command that cannot be moved into its control group does not run at all",
    run: async (context) => {
      const sandbox = await context.open({ limits: { memory_mb: 64 } });
      for (const group of await groupsOf(context, sandbox.id)) rmdirSync(group);
      const { exit, stdout } = await run(sandbox, ["/bin/echo", "ran"]);
      assert.equal(stdout, "");
      assert.ok(!exit.started && exit.detail.includes("control group"), JSON.stringify(exit));
    },
  },
  {
    title: "every process is in the sandbox's groups, and with the sandbox they go, also when twelve end at once",
    run: async (context) => {
      const sandboxes = await Promise.all(Array.from({ length: 12 }, () => context.open({ limits: { memory_mb: 64, pids: 40, cpus: 1 } })));
      const groups = (await Promise.all(sandboxes.map(({ id }) => groupsOf(context, id)))).flat();
      const running = sandboxes.map((sandbox) => start(sandbox, ["/bin/sh", "-c", "sleep 600 & sleep 600"]));
      // bwrap, pid 1 of the sandbox, the shell and both of its children
      await until(() => groups.every((group) => pidsIn(group).length === 5), "all processes run", 60_000);
      assert.ok(groups.flatMap(pidsIn).every((pid) => factsOf(pid)?.uid !== 0));
      const ends = await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
      for (const end of ends) assert.deepEqual(end, { cleanup_error: null });
      await Promise.all(running.map(({ exited }) => exited));
      assert.deepEqual(groups.filter(existsSync), []);
      assert.deepEqual(
        groups
          .map(dirname)
          .filter((parent) => existsSync(parent) && readdirSync(parent).some((name) => name.startsWith(`check-${process.pid}-`))),
        [],
      );
    },
  },
];

async function groupsOf({ setting }: Context, id: string): Promise<readonly string[]> {
  const groups = (await listOwnerRecords(setting.stateDir)).find((record) => record.id === id)?.cgroups ?? [];
  assert.ok(groups.length > 0, "the sandbox has no control group");
  return groups;
}

function pidsIn(group: string): number[] {
  return readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
}

function throttled(group: string): number {
  const file = join(group, "cpu.stat");
  return existsSync(file) ? Number(/^nr_throttled (\d+)$/mu.exec(readFileSync(file, "utf8"))?.[1] ?? 0) : 0;
}
