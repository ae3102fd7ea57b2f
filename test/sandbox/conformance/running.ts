// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { PACKAGED_CODEX_VERSION } from "../../../src/codex/binary.ts";
import { finish, processesNaming, run, sh, start, uniqueSeconds, until, type Check } from "./setting.ts";

function parentOf(pid: number): number {
  return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** Starting, streaming, stopping. */
export const runningChecks: Check[] = [
  {
    title: "a command's stdout, stderr and exit code arrive separately",
    run: async (context) => {
      const result = await run(await context.open(), ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]);
      assert.deepEqual(result, { exit: { started: true, code: 7, signal: null }, stdout: "out\n", stderr: "err\n" });
    },
  },
  {
    title: "death by a signal is reported as that signal, not as an exit code",
    run: async (context) => {
      const sandbox = await context.open();
      for (const signal of ["KILL", "TERM", "SEGV"]) {
        for (const left of ["", "sleep 5 >/dev/null 2>&1 & "]) {
          const { exit } = await run(sandbox, ["/bin/sh", "-c", `${left}kill -${signal} $$`]);
          assert.deepEqual(exit, { started: true, code: null, signal: `SIG${signal}` });
        }
      }
    },
  },
  {
    title: "a sandbox that was killed from outside is told from a command that another one killed [E11]",
    only: "bubblewrap",
    run: async (context) => {
      const inside = ["kill -9 -1", "(kill -9 $$; exec sleep 5)", "(exec 8>&-; kill -9 $$; exec sleep 5)", "(kill -9 $$)"];
      for (const by of ["pid 1", "bwrap", ...inside]) {
        const seconds = uniqueSeconds();
        const kills = inside.includes(by) ? `${by} >/dev/null 2>&1 & ` : "";
        const running = start(await context.open(), ["/bin/sh", "-c", `${kills}sleep ${seconds}; true`]);
        if (kills === "") {
          const sleeping = (): number | undefined => processesNaming(`sleep\0${seconds}`)[0];
          await until(() => sleeping() !== undefined, "the command runs");
          const pid1 = parentOf(parentOf(sleeping()!)); // of the shell
          process.kill(by === "bwrap" ? parentOf(pid1) : pid1, "SIGKILL");
        }
        const killed = { started: true, code: null, signal: "SIGKILL" };
        assert.deepEqual(await running.exited, kills === "" ? { ...killed, outside: true } : killed, by);
      }
    },
  },
  {
    title: "a program or a directory that is missing is a launch failure, never an exit",
    run: async (context) => {
      const sandbox = await context.open();
      const { exit } = await run(sandbox, ["/no/such/program"]);
      assert.ok(!exit.started && exit.detail.includes("No such file") !== exit.detail.includes("ENOENT"), JSON.stringify(exit));
      const elsewhere = await finish(sandbox.exec(["/bin/true"], { env: {}, cwd: "/no/such/directory" }));
      assert.equal(elsewhere.exit.started, false);
    },
  },
  {
    title: "a runtime that is not there fails before the command and leaves nothing",
    only: "bubblewrap",
    run: async (context) => {
      const runtime = { key: "missing", hostDir: "/no/such/runtime", only: ["bin"] };
      if (process.getuid?.() === 0) {
        await assert.rejects(context.open({ runtime }), { code: "sandbox_failed" });
      } else {
        const { exit } = await run(await context.open({ runtime }), ["/bin/true"]);
        assert.equal(exit.started, false);
      }
    },
  },
  {
    title: "stdin is streamed and its end is seen; stdout arrives while the command still runs",
    run: async (context) => {
      const running = start(await context.open(), ["/bin/cat"]);
      running.stdin.write("first");
      const [chunk] = (await once(running.stdout, "data")) as [Buffer];
      assert.equal(chunk.toString(), "first");
      running.stdin.end();
      assert.deepEqual(await running.exited, { started: true, code: 0, signal: null });
    },
  },
  {
    title: "a command that does not read its input does no harm to the worker",
    run: async (context) => {
      const running = start(await context.open(), ["/bin/true"]);
      running.stdin.end(Buffer.alloc(1 << 20));
      assert.deepEqual(await running.exited, { started: true, code: 0, signal: null });
    },
  },
  {
    title: "50 MB of output are held back, not buffered, while nobody reads",
    run: async (context) => {
      const running = start(await context.open(), ["/usr/bin/head", "-c", "50000000", "/dev/zero"]);
      running.stdin.end();
      const before = process.memoryUsage().rss;
      await sleep(300);
      let bytes = 0;
      for await (const chunk of running.stdout) bytes += (chunk as Buffer).length;
      assert.equal(bytes, 50_000_000);
      assert.ok(process.memoryUsage().rss - before < 100e6);
      assert.deepEqual(await running.exited, { started: true, code: 0, signal: null });
    },
  },
  {
    title: "output bytes that are no UTF-8 arrive unchanged",
    run: async (context) => {
      assert.equal(await sh(await context.open(), String.raw`printf '\377\000\303'; sleep 0.05; printf '\244\n'`), "\xff\0\xc3\xa4\n");
    },
  },
  {
    title: "arguments arrive exactly: spaces, quotes, newlines, dashes, dollars, nothing at all",
    run: async (context) => {
      const words = ["a b", "", "'", '"', "new\nline", "--bind", "-x", "$HOME", "*", "\\", "ä"];
      const { stdout } = await run(await context.open(), ["/usr/bin/printf", "%s\\0", ...words]);
      assert.deepEqual(Buffer.from(stdout, "latin1").toString().split("\0").slice(0, -1), words);
    },
  },
  {
    title: "a NUL in a word or an environment value is refused: it would inject an option",
    run: async (context) => {
      const sandbox = await context.open();
      const cwd = sandbox.inside.workdir;
      for (const [argv, env] of [
        [["/bin/true", "a\0b"], {}],
        [["/bin/true"], { A: "x\0--bind\0/\0/host" }],
        [["/bin/true"], { "A=B": "x" }],
      ] as [string[], Record<string, string>][]) {
        assert.throws(() => sandbox.exec(argv, { env, cwd }), { code: "sandbox_failed" });
      }
    },
  },
  {
    title: "stop sends SIGTERM to the command itself, and its own exit code is reported",
    run: async (context) => {
      const running = start(await context.open(), [
        "/bin/sh",
        "-c",
        "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done",
      ]);
      running.stdin.end();
      await once(running.stdout, "data");
      running.stop({ graceMs: 20_000 });
      running.stop({ graceMs: 20_000 });
      const result = await finish(running);
      assert.deepEqual(result.exit, { started: true, code: 9, signal: null });
      running.stop({ graceMs: 0 });
    },
  },
  {
    title: "a command that ignores SIGTERM is killed when the grace is over, and its detached descendants with it",
    run: async (context) => {
      const mark = uniqueSeconds();
      const script = `trap '' TERM; setsid nohup sleep ${mark} >/dev/null 2>&1 & (setsid sh -c 'sleep ${mark} & sleep ${mark}' &) ; echo ready; while :; do sleep 0.05; done`;
      const running = start(await context.open(), ["/bin/sh", "-c", script]);
      running.stdin.end();
      await once(running.stdout, "data");
      await until(() => processesNaming(mark).length >= 3, "the descendants run");
      running.stop({ graceMs: 100 });
      assert.deepEqual(await running.exited, { started: true, code: null, signal: "SIGKILL" });
      assert.deepEqual(processesNaming(mark), []);
    },
  },
  {
    title: "when the command ends, what it detached has ended too, and `exited` waits for that [R47]",
    run: async (context) => {
      const mark = uniqueSeconds();
      const script = `setsid nohup sleep ${mark} >/dev/null 2>&1 & (setsid sh -c 'sleep ${mark}' >/dev/null 2>&1 &) ; sleep 0.2; exit 3`;
      const running = start(await context.open(), ["/bin/sh", "-c", script]);
      running.stdin.end();
      await until(() => processesNaming(mark).length >= 2, "the descendants run");
      assert.deepEqual(await running.exited, { started: true, code: 3, signal: null });
      assert.deepEqual(processesNaming(mark), []);
    },
  },
  {
    title: "stop works at any moment of the launch",
    run: async (context) => {
      const sandbox = await context.open();
      for (const delayMs of [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 10]) {
        const mark = uniqueSeconds();
        const running = start(sandbox, ["/bin/sleep", mark]);
        await sleep(delayMs);
        running.stop({ graceMs: delayMs });
        const exit = await running.exited;
        assert.ok(!exit.started || exit.signal !== null, JSON.stringify(exit));
        assert.deepEqual(processesNaming(mark), []);
      }
    },
  },
  {
    title: "a sandbox runs one command at a time, and none once destroyed",
    run: async (context) => {
      const sandbox = await context.open();
      const mark = uniqueSeconds();
      const running = start(sandbox, ["/bin/sleep", mark]);
      await until(() => processesNaming(mark).length > 0, "the command runs");
      assert.throws(() => start(sandbox, ["/bin/true"]), { code: "sandbox_failed" });
      const ends = await Promise.all([sandbox.destroy(), sandbox.destroy()]);
      for (const end of [...ends, await sandbox.destroy()]) assert.deepEqual(end, { cleanup_error: null });
      assert.deepEqual(await running.exited, { started: true, code: null, signal: "SIGKILL" });
      assert.throws(() => start(sandbox, ["/bin/true"]), { code: "sandbox_failed" });
      await assert.rejects(sandbox.place("late", Buffer.alloc(0)), { code: "sandbox_failed" });
    },
  },
  {
    title: "usage tells wall time, and processor time and memory of all processes",
    run: async (context) => {
      const sandbox = await context.open();
      const running = start(sandbox, ["/bin/sh", "-c", "sh -c 'while :; do :; done'"]);
      running.stdin.end();
      await until(() => (sandbox.usage().cpu_ms ?? 0) >= 50, "processor time is seen", 20_000);
      running.stop({ graceMs: 0 });
      await running.exited;
      const { wall_ms, cpu_ms, peak_memory_bytes } = sandbox.usage();
      assert.ok(wall_ms >= 50 && cpu_ms !== null && cpu_ms <= wall_ms * 2 && peak_memory_bytes !== null && peak_memory_bytes > 500_000);
      const { oom_killed, memory_limit_reached } = sandbox.usage();
      assert.ok(oom_killed === memory_limit_reached && oom_killed !== true);
      assert.deepEqual(sandbox.usage(), { wall_ms, cpu_ms, peak_memory_bytes, oom_killed, memory_limit_reached });
    },
  },
  {
    title: "the real Codex runs",
    run: async (context) => {
      const sandbox = await context.open();
      const { exit, stdout } = await run(sandbox, [`${sandbox.runtimeDir}/bin/codex`, "--version"]);
      assert.deepEqual(
        { exit, stdout },
        { exit: { started: true, code: 0, signal: null }, stdout: `codex-cli ${PACKAGED_CODEX_VERSION}\n` },
      );
    },
  },
  {
    title: "probe() runs a command in the real profile and says how far isolation goes",
    run: async (context) => {
      const probe = await context.provider.probe();
      assert.equal(probe.ok, true, JSON.stringify(probe));
      const root = context.setting.provider === "bubblewrap" && process.getuid?.() === 0;
      assert.equal(probe.uidPerActivation, root);
      assert.ok(root ? probe.summary.includes("uid for each activation") : /one uid|no sandbox/u.test(probe.summary));
    },
  },
];
