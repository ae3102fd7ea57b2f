// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { copyFile, cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { isAlive, processIdentity } from "../../../src/host/process.ts";
import { listOwnerRecords, writeOwnerRecord } from "../../../src/sandbox/owner-record.ts";
import { reapDead } from "../../../src/sandbox/reap.ts";
import { Context, processesNaming, start, uniqueSeconds, until, type Check, type Setting } from "./setting.ts";

/** A second worker; tells `ready` and then waits to be killed. */
export async function beVictim(setting: Setting, mark: string): Promise<void> {
  const sandbox = await new Context(setting).open();
  const script = `setsid nohup sleep ${mark} >/dev/null 2>&1 & (setsid sh -c 'sleep ${mark}' &) ; echo ready; exec sleep ${mark}`;
  const running = start(sandbox, ["/bin/sh", "-c", script]);
  await once(running.stdout, "data");
  process.stdout.write(`ready ${sandbox.outside.workdir}\n`);
  await running.exited;
}

function startVictim(setting: Setting, mark: string): ChildProcess {
  return spawn(process.execPath, [process.argv[1] as string, JSON.stringify(setting), mark], { stdio: ["ignore", "pipe", "inherit"] });
}

async function cgroupsBut({ stateDir }: Setting, id: string | null): Promise<string[]> {
  return (await listOwnerRecords(stateDir)).flatMap((record) => (record.id === id ? [] : (record.cgroups ?? [])));
}

async function firstLine(child: ChildProcess): Promise<string> {
  const [line] = (await once(createInterface({ input: child.stdout as Readable }), "line")) as [string];
  return line;
}

/** What happens when a worker dies. */
export const reapingChecks: Check[] = [
  {
    title: "whoever holds the claim ends what earlier attempts still run, of a living worker too, and nothing else [D1]",
    run: async (context) => {
      const own = (attempt: number, activation_id = "act-a", store_id = "store-1") => ({
        ...context.spec().owner,
        attempt,
        activation_id,
        store_id,
      });
      const seconds = uniqueSeconds();
      const script = `(setsid sleep ${seconds} &) ; exec sleep ${seconds}`;
      const earlier = await context.open({ owner: own(1) });
      const exited = start(earlier, ["/bin/sh", "-c", script]).exited;
      const others = [own(2), own(1, "act-b"), own(1, "act-a", "store-2"), context.spec({ id: "of-earlier-version" }).owner];
      const spared = await Promise.all(others.map(async (owner) => start(await context.open({ owner }), ["/bin/sleep", seconds])));
      await until(() => processesNaming(seconds).length >= 6, "all of them run");
      assert.deepEqual(await context.provider.endEarlier(own(2)), []);
      await exited;
      const left = await Promise.race([...spared.map(({ exited: one }) => one), delay(300, "all run")]);
      assert.equal(left, "all run");
      assert.ok(existsSync(earlier.outside.workdir), "its directory is its owner's");
      assert.deepEqual(await earlier.destroy(), { cleanup_error: null });
    },
  },
  {
    title: "kill -9 of the worker ends its sandboxes; a reaper removes the rest, and nothing of a living worker [R47]",
    run: async (context) => {
      const { setting } = context;
      const mark = uniqueSeconds();
      const living = await context.open();
      const alive = start(living, ["/bin/sleep", uniqueSeconds()]);
      const victim = startVictim(setting, mark);
      const directory = (await firstLine(victim)).replace("ready ", "");
      await until(() => processesNaming(mark).length >= 4, "the victim's processes run");
      assert.deepEqual(await reapDead(setting.stateDir), []);
      const groups = await cgroupsBut(setting, living.id);
      victim.kill("SIGKILL");
      await once(victim, "exit");
      if (setting.provider === "bubblewrap") await until(() => processesNaming(mark).length === 0, "the kernel ended the sandbox");
      const [one, two] = await Promise.all([reapDead(setting.stateDir), reapDead(setting.stateDir)]);
      const reaped = [...one, ...two];
      assert.deepEqual(
        reaped.map(({ error }) => error),
        [null],
      );
      assert.deepEqual(processesNaming(mark), []);
      assert.equal(existsSync(directory), false);
      assert.deepEqual(groups.filter(existsSync), []);
      assert.deepEqual(
        (await listOwnerRecords(setting.stateDir)).map(({ id }) => id),
        [living.id],
      );
      assert.equal(existsSync(living.outside.workdir), true);
      alive.stop({ graceMs: 5000 });
      assert.deepEqual(await alive.exited, { started: true, code: null, signal: "SIGTERM" });
    },
  },
  {
    title: "a record whose owner's pid was given to another process, or is of an earlier boot, is reaped; that process lives [E10 E19]",
    run: async ({ setting: { stateDir } }) => {
      // A session and group of its own, as what a sandbox's first process had.
      const innocent = spawn("/bin/sleep", [uniqueSeconds()], { detached: true, stdio: "ignore" });
      const identity = processIdentity(innocent.pid);
      assert.ok(identity !== null);
      const earlier = { stale: { ...identity, start_time: "1" }, rebooted: { ...identity, boot_id: "another boot" } };
      for (const [id, owner] of Object.entries({ ...earlier, alive: identity })) {
        const directory = join(stateDir, "sandboxes", `${id}.0123456789abcdef`);
        await mkdir(join(directory, "home", ".codex"), { recursive: true });
        await writeFile(join(directory, "home", ".codex", "config.toml"), "token");
        const facts = { activation_id: id, attempt: 0, process: owner };
        await writeOwnerRecord(stateDir, { id, provider: "host", owner: facts, directory, mark: "0123456789abcdef", uid: null });
      }
      const reaped = await reapDead(stateDir);
      assert.deepEqual(Object.fromEntries(reaped.map(({ record, error }) => [record.id, error])), { rebooted: null, stale: null });
      assert.deepEqual(await readdir(join(stateDir, "sandboxes")), ["alive.0123456789abcdef", "alive.json"]);
      assert.ok(isAlive(identity));
      innocent.kill("SIGKILL");
      await once(innocent, "exit");
      assert.equal((await reapDead(stateDir)).length, 1);
    },
  },
  {
    title: "a worker killed at any moment of a launch leaves nothing that a reaper does not end",
    only: "bubblewrap",
    run: async (context) => {
      for (const delayMs of [0, 1, 2, 3, 4, 5, 6, 8, 12]) {
        const mark = `${delayMs}${uniqueSeconds()}`;
        const victim = startVictim(context.setting, `${mark}:${delayMs}`);
        await once(victim, "exit");
        const groups = await cgroupsBut(context.setting, null);
        // Within a few milliseconds bwrap's own protection has a gap, which a reaper must close.
        const reaped = await reapDead(context.setting.stateDir);
        assert.deepEqual(
          reaped.map(({ error }) => error),
          [null],
        );
        assert.deepEqual(processesNaming(`sleep\0${mark}`), []);
        assert.deepEqual(groups.filter(existsSync), []);
      }
      if (process.getuid?.() === 0) assert.deepEqual(await readdir(join(context.setting.runtimeRoot, "uids")), []);
    },
  },
  {
    title: "workers that publish the same runtime and the same bwrap at once, from below a closed home, all get them whole",
    needsRoot: true,
    run: async (context) => {
      const { runtimeRoot, ...rest } = context.setting;
      const closed = join(rest.stateDir, "closed"); // 0700, as a project below root's home
      await cp(rest.codexDir, closed, { recursive: true, filter: (path) => !/codex-path|code-mode|zsh/u.test(path) });
      await copyFile(rest.bwrapPath, join(closed, "bwrap"));
      const setting = { ...rest, runtimeRoot: `${runtimeRoot}-two`, codexDir: closed, bwrapPath: join(closed, "bwrap") };
      const mark = uniqueSeconds();
      const victims = [1, 2, 3].map(() => startVictim(setting, mark));
      const lines = await Promise.all(victims.map(firstLine));
      assert.equal(new Set(lines).size, 3);
      const runtimes = await readdir(join(setting.runtimeRoot, "runtimes"));
      assert.ok(
        runtimes.every((name) => !name.startsWith(".")),
        runtimes.join(" "),
      );
      assert.deepEqual([runtimes.length, new Set(runtimes.map((name) => name.split("-")[0]))], [2, new Set(["bwrap", "codex"])]);
      for (const victim of victims) victim.kill("SIGKILL");
      await Promise.all(victims.map((victim) => once(victim, "exit")));
      await until(() => processesNaming(mark).length === 0, "the sandboxes ended");
      assert.deepEqual(
        (await reapDead(setting.stateDir)).map(({ error }) => error),
        [null, null, null],
      );
    },
  },
];
