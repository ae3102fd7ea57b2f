// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { isAlive, processIdentity } from "../../../src/host/process.ts";
import { factsOf } from "../../../src/sandbox/processes.ts";
import { processesNaming, run, sh, start, uniqueSeconds, until, type Check } from "./setting.ts";

/** Set in the worker's environment; must be found nowhere inside. */
export const WORKER_SECRET = "hunter2-of-the-worker";

/** What a hostile program may see and do. All for bubblewrap. */
export const isolationChecks: Check[] = [
  {
    title: "the command's environment is what was given, and PWD",
    run: async (context) => {
      const { stdout } = await run(await context.open(), ["/usr/bin/env"], { A: "1", B: "two words\nand a line" });
      assert.deepEqual(stdout.split("\n").toSorted(), ["", "A=1", "B=two words", "PWD=/workspace", "and a line"]);
    },
  },
  {
    title: "the worker's environment is in no process that can be seen, pid 1 included [R47]",
    run: async (context) => {
      assert.equal(process.env["WORKER_SECRET"], WORKER_SECRET);
      const sandbox = await context.open();
      const seen = await sh(sandbox, "cat /proc/*/environ; echo; cat /proc/1/environ");
      assert.ok(!seen.includes(WORKER_SECRET) && !seen.includes("WORKER_"));
      assert.match(seen, /\nROLLCALL_SANDBOX_ID=[0-9a-f]{16}\0$/u); // all of pid 1's environment
    },
  },
  {
    title: "pid 1's arguments show neither options nor host paths",
    run: async (context) => {
      const sandbox = await context.open();
      const words = (await sh(sandbox, "cat /proc/1/cmdline")).split("\0");
      assert.deepEqual(words.slice(1, 6), ["--args", "3", "--", "/bin/sh", "-c"]);
      assert.match(words[0] ?? "", /^\.\/[a-z]+$/u);
    },
  },
  {
    title: "/proc/sys cannot be written, core_pattern least of all",
    run: async (context) => {
      const names =
        "kernel/core_pattern kernel/modprobe vm/drop_caches net/ipv4/ip_forward user/max_user_namespaces fs/protected_hardlinks";
      const sandbox = await context.open();
      const seen = await sh(
        sandbox,
        `for f in ${names}; do test -e /proc/sys/$f && echo there; test -w /proc/sys/$f && echo WRITABLE $f; done; test -w /proc/sysrq-trigger && echo WRITABLE sysrq; grep ' /proc/sys ' /proc/self/mounts`,
      );
      assert.ok(seen.includes("there") && !seen.includes("WRITABLE"), seen);
      assert.match(seen, /^proc \/proc\/sys proc ro,/mu);
    },
  },
  {
    title: "homes, the project, the worker's state and other sandboxes are not there",
    run: async (context) => {
      const { stateDir, runtimeRoot, projectDir } = context.setting;
      await mkdir(stateDir, { recursive: true });
      await writeFile(join(stateDir, "secret"), "x");
      const sibling = await context.open();
      await sibling.place("sibling-file", Buffer.from("x"));
      const sandbox = await context.open();
      const places = [
        "/root",
        "/home/ubuntu",
        "/sys",
        "/run",
        "/var",
        "/mnt",
        "/etc/shadow",
        stateDir,
        runtimeRoot,
        projectDir,
        sibling.outside.workdir,
        sandbox.outside.workdir,
      ];
      const seen = await sh(
        sandbox,
        `for p in ${places.join(" ")}; do test -e $p && echo SEEN $p; done; ls /home /tmp /workspace; find / -xdev -name 'sibling-file' 2>/dev/null; cat /etc/passwd`,
      );
      assert.ok(!/SEEN|sibling-file/u.test(seen), seen);
      assert.deepEqual(seen.split("\n").slice(0, 3), ["/home:", "agent", ""]);
      assert.ok(seen.includes("agent:x:1000:1000:") && seen.includes("/workspace:\n"));
    },
  },
  {
    title: "the way back through pid 1's root, working directory and descriptors leads nowhere",
    run: async (context) => {
      const sandbox = await context.open();
      const seen = await sh(sandbox, "ls /proc/1/root/; ls -a /proc/1/cwd/; ls -l /proc/1/fd/ /proc/self/fd/");
      assert.ok(!/\broot\b\n/u.test(seen.split("/proc/1/fd")[0] ?? ""), seen);
      for (const line of seen.split("\n").filter((line) => line.includes("->")))
        assert.match(line, /socket:|pipe:|eventfd|\/proc\/\d+\/fd|\/dev\/null/u);
    },
  },
  {
    title: "system directories, /dev and the runtime are read-only; home, workdir, /tmp and /dev/shm are not",
    run: async (context) => {
      const sandbox = await context.open();
      const tried = await sh(
        sandbox,
        "for d in / /usr /usr/bin /etc /dev /opt /opt/runtime /opt/runtime/bin /proc/sys; do touch $d/x 2>/dev/null && echo WROTE $d; done; for d in /home/agent /home/agent/.codex /workspace /tmp /dev/shm; do touch $d/x && echo wrote $d; done; echo x >/dev/null && echo null",
      );
      assert.equal(tried, "wrote /home/agent\nwrote /home/agent/.codex\nwrote /workspace\nwrote /tmp\nwrote /dev/shm\nnull\n");
    },
  },
  {
    title: "/proc lists the sandbox's own processes only",
    run: async (context) => {
      const pids = (await sh(await context.open(), "ls /proc | grep -E '^[0-9]+$'")).trim().split("\n").map(Number);
      assert.ok(pids.length >= 2 && pids.length <= 6 && Math.max(...pids) < 20, pids.join(" "));
    },
  },
  {
    title: "no capabilities, no new privileges, no root inside or outside",
    run: async (context) => {
      const mark = uniqueSeconds();
      const running = start(await context.open(), [
        "/bin/sh",
        "-c",
        `grep -E '^(Cap|NoNewPrivs|Uid|Gid|Groups)' /proc/self/status; sleep ${mark}`,
      ]);
      running.stdin.end();
      const [chunk] = (await once(running.stdout, "data")) as [Buffer];
      const fields = Object.fromEntries(
        chunk
          .toString()
          .trim()
          .split("\n")
          .map((line) => line.split(/:\s*/u)),
      );
      assert.deepEqual([fields["Uid"], fields["Gid"], fields["NoNewPrivs"]], ["1000\t1000\t1000\t1000", "1000\t1000\t1000\t1000", "1"]);
      for (const name of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) assert.equal(fields[name], "0000000000000000");
      await until(() => processesNaming(mark).length > 0, "the command runs");
      const uids = processesNaming(mark).map((pid) => factsOf(pid)?.uid ?? 0);
      const own = process.getuid?.() ?? 0;
      assert.ok(
        uids.every((uid) => uid !== 0 && (own === 0 ? uid >= 1_900_000_000 : uid === own)),
        uids.join(" "),
      );
      running.stop({ graceMs: 0 });
    },
  },
  {
    title: "nested namespaces, mounts, device nodes and ownership changes are refused",
    run: async (context) => {
      const tries = [
        "unshare -U true",
        "unshare -m true",
        "mount -t tmpfs none /tmp",
        "mount -o remount,rw /usr",
        "mount -o remount,rw,bind /proc/sys",
        "umount /proc/sys",
        "mknod /tmp/k c 1 1",
        "chown 0 /workspace",
        "chroot / true",
      ];
      const seen = await sh(
        await context.open(),
        tries.map((words) => `${words} 2>/dev/null && echo DID '${words}'`).join("; ") + "; echo end",
      );
      assert.equal(seen, "end\n");
    },
  },
  {
    title: "pkill, fuser on the worker's port, a list of all processes and kill -9 -1 inside reach nothing outside [R47 E10]",
    run: async (context) => {
      const mark = uniqueSeconds();
      const server = createServer().listen(0, "127.0.0.1").unref(); // this process is the worker
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      const decoys = ["node", "codex", "tar"].map((argv0) => spawn("/bin/sleep", [mark], { argv0, stdio: "ignore" }));
      for (const decoy of decoys) decoy.unref();
      process.once("exit", () => decoys.forEach((decoy) => decoy.kill("SIGKILL"))); // also when the check fails
      const sibling = await context.open();
      const other = start(sibling, ["/bin/sh", "-c", `exec sleep ${mark}`]);
      await until(() => processesNaming(mark).length >= 4, "decoys and sibling run");
      const before = processesNaming(mark).map((pid) => processIdentity(pid));
      const sandbox = await context.open();
      for (const script of [
        "pkill -f node; pkill -9 -f codex; pkill -9 -f tar; pkill -9 sleep; pkill bwrap; kill -9 1; echo ran",
        `command -v fuser >/dev/null || echo NO-FUSER; fuser -k ${port}/tcp; fuser -k -9 -n tcp ${port}; echo ran`,
        // What fuser does, for where there is none: whoever holds a socket.
        "echo ran; for fd in /proc/[0-9]*/fd/*; do case $(readlink $fd) in socket*) kill -9 $(echo $fd | cut -d/ -f3);; esac; done",
        "echo ran; ps -eo pid= | awk '{print $1}' | xargs kill -9",
        "kill -9 1; echo ran; kill -9 -1",
      ]) {
        await sandbox.place("hostile", Buffer.from(script)); // not among the arguments, which pkill -f searches
        const { stdout, exit } = await run(sandbox, ["/bin/sh", "hostile"]);
        assert.ok(exit.started && stdout.endsWith("ran\n"), stdout);
        if (stdout.startsWith("NO-FUSER")) process.stderr.write("NOT TESTED: fuser, which is not installed (psmisc)\n");
      }
      assert.ok(before.length >= 4 && before.every((identity) => identity !== null && isAlive(identity)));
      assert.deepEqual(
        decoys.map(({ exitCode, signalCode }) => exitCode ?? signalCode),
        [null, null, null],
      );
      server.close();
      other.stop({ graceMs: 0 });
      await other.exited;
      for (const decoy of decoys) decoy.kill("SIGKILL");
    },
  },
  {
    title: "two sandboxes at once see nothing of each other: files, processes, shared memory [A14]",
    run: async (context) => {
      const [one, two] = await Promise.all([context.open(), context.open()]);
      const mark = uniqueSeconds();
      const script = `touch /tmp/mine /workspace/mine /home/agent/.codex/mine /dev/shm/mine; echo ready; exec sleep ${mark}`;
      const running = start(one, ["/bin/sh", "-c", script]);
      running.stdin.end();
      await once(running.stdout, "data");
      const seen = await sh(
        two,
        `ls -A /tmp /workspace /home/agent/.codex /dev/shm; cat /proc/*/cmdline | tr '\\0' '\\n' | grep -c '^${mark.slice(0, 3)}' `,
      );
      assert.ok(!seen.includes("mine") && seen.endsWith("\n0\n"), seen);
      running.stop({ graceMs: 0 });
    },
  },
  {
    title: "another activation's uid can read no file of this one, even outside of its sandbox [A14]",
    needsRoot: true,
    run: async (context) => {
      const [one, two] = await Promise.all([context.open(), context.open()]);
      await one.place(`${one.inside.codexHome}/config.toml`, Buffer.from("token"), 0o644);
      const owner = (await sh(two, "stat -c %u /workspace")).trim();
      assert.equal(owner, "1000");
      const { uid } = (await import("node:fs")).statSync(two.outside.workdir);
      const reader = spawn("/bin/cat", [join(one.outside.codexHome, "config.toml")], {
        uid,
        gid: uid,
        stdio: ["ignore", "pipe", "ignore"],
      });
      const [code] = (await once(reader, "exit")) as [number];
      assert.equal(code, 1);
    },
  },
  {
    title: "a descriptor that the worker inherited does not reach the sandbox",
    run: async (context) => {
      const { inheritableDescriptors } = await import("../../../src/sandbox/inherited-descriptors.ts");
      assert.ok(inheritableDescriptors().includes(60)); // the test left one open: the root directory
      const seen = await sh(await context.open(), "ls /proc/self/fd/60/ 2>/dev/null; readlink /proc/self/fd/60");
      assert.equal(seen, "/dev/null\n");
    },
  },
  {
    title: "limits: processes of one activation, size of a file, shared memory",
    run: async (context) => {
      const sandbox = await context.open({ limits: { pids: 20, disk_mb: 1 } });
      const big = await sh(
        sandbox,
        "head -c 3000000 /dev/zero >/workspace/big; stat -c %s /workspace/big; head -c 80000000 /dev/zero >/dev/shm/big; test $(stat -c %s /dev/shm/big) -le 67108864 && echo small",
      );
      assert.equal(big, "1048576\nsmall\n");
      if (process.getuid?.() !== 0) return;
      const forks = await sh(sandbox, "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); echo $i; done; echo all");
      assert.ok(!forks.includes("all"));
    },
  },
];
