// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { listOwnerRecords } from "../../../src/sandbox/owner-record.ts";
import { processesOfUid } from "../../../src/sandbox/processes.ts";
import { run, sh, start, type Check } from "./setting.ts";

/** Files in, files out, and nothing left. */
export const fileChecks: Check[] = [
  {
    title: "files are placed with their mode and parents, owned by the sandbox's user",
    run: async (context) => {
      const sandbox = await context.open();
      const { codexHome, workdir } = sandbox.inside;
      await sandbox.place(`${codexHome}/config.toml`, Buffer.from("a = 1\n"), 0o600);
      await sandbox.place("in/puts/empty", Buffer.alloc(0));
      await sandbox.place(`${workdir}/stream`, Readable.from([Buffer.from("one "), Buffer.from("two")]), 0o755);
      await sandbox.place("stream", Buffer.from("replaced"), 0o755);
      const seen = await sh(
        sandbox,
        `cd ${workdir}; stat -c '%a %s %n' ${codexHome}/config.toml in/puts/empty stream; cat stream ${codexHome}/config.toml; touch in/puts/new && echo wrote; id -u; stat -c %u in/puts/empty`,
      );
      const [uid] = seen.trim().split("\n").slice(-1);
      assert.equal(seen, `600 6 ${codexHome}/config.toml\n600 0 in/puts/empty\n755 8 stream\nreplaceda = 1\nwrote\n${uid}\n${uid}\n`);
    },
  },
  {
    title: "placing follows no link and accepts no path outside",
    run: async (context) => {
      const sandbox = await context.open();
      const { stateDir } = context.setting;
      await writeFile(join(stateDir, "victim"), "untouched");
      await mkdir(join(stateDir, "dir"), { recursive: true });
      await symlink(join(stateDir, "victim"), join(sandbox.outside.workdir, "file"));
      await symlink(join(stateDir, "dir"), join(sandbox.outside.workdir, "dir"));
      await sandbox.place("file", Buffer.from("mine"));
      assert.equal(readFileSync(join(stateDir, "victim"), "utf8"), "untouched");
      assert.equal(readFileSync(join(sandbox.outside.workdir, "file"), "utf8"), "mine");
      for (const path of [
        "dir/x",
        "dir/y/z",
        "../x",
        "/etc/x",
        "",
        ".",
        sandbox.inside.home,
        `${sandbox.inside.home}/../x`,
        "a\0b",
        "file/x",
      ]) {
        await assert.rejects(sandbox.place(path, Buffer.from("x")), { code: "bad_path" }, path);
      }
      assert.deepEqual(await readdir(join(stateDir, "dir")), []);
    },
  },
  {
    title: "the worker reads and removes everything afterwards, whatever modes were set, also very deep trees",
    run: async (context) => {
      const sandbox = await context.open();
      const { home, tmp } = sandbox.inside; // never name /tmp itself here: the host provider's is the real one
      const locked = "mkdir -p out/a/b; echo deliverable >out/a/b/f; ln -s /etc/passwd out/link; chmod 000 out/a/b/f out/a/b out/a out";
      const deep =
        "i=0; while [ $i -lt 300 ]; do mkdir ddddddddddddddddddddddddd; cd ddddddddddddddddddddddddd; i=$((i+1)); done; chmod 000 .";
      await run(sandbox, ["/bin/sh", "-c", `${locked}; ${deep}; chmod 000 '${tmp}' '${home}'; true`]);
      assert.equal(await readFile(join(sandbox.outside.workdir, "out/a/b/f"), "utf8"), "deliverable\n");
      assert.equal(statSync("/etc/passwd").mode & 0o777, 0o644);
      assert.deepEqual(await sandbox.destroy(), { cleanup_error: null });
      assert.equal(existsSync(dirname(sandbox.outside.workdir)), false);
    },
  },
  {
    title: "removal goes round links: what they point at stays",
    run: async (context) => {
      const sandbox = await context.open();
      const kept = join(context.setting.stateDir, "kept");
      await mkdir(kept, { recursive: true });
      await writeFile(join(kept, "file"), "x");
      await chmod(join(kept, "file"), 0o400);
      await symlink(kept, join(sandbox.outside.workdir, "link"));
      await sh(sandbox, "true");
      assert.deepEqual(await sandbox.destroy(), { cleanup_error: null });
      assert.deepEqual([await readdir(kept), statSync(join(kept, "file")).mode & 0o777], [["file"], 0o400]);
    },
  },
  {
    title: "an id that is in use is refused, and its sandbox stays as it is",
    run: async (context) => {
      const sandbox = await context.open();
      await assert.rejects(context.open({ id: sandbox.id }), { code: "sandbox_failed" });
      assert.equal(existsSync(sandbox.outside.workdir), true);
      for (const id of ["../x", "", ".", "a/b", "-x"]) await assert.rejects(context.open({ id }), { code: "sandbox_failed" });
    },
  },
  {
    title: "twelve at once, stopped in the middle: no process, mount, directory, lock or record remains",
    run: async (context) => {
      const { stateDir, runtimeRoot } = context.setting;
      const sandboxes = await Promise.all(Array.from({ length: 12 }, () => context.open()));
      const uids = sandboxes.map(({ outside }) => statSync(outside.workdir).uid);
      const rooted = context.setting.provider === "bubblewrap" && process.getuid?.() === 0;
      assert.equal(new Set(uids).size, rooted ? 12 : 1);
      assert.equal((await listOwnerRecords(stateDir)).length, 12);
      const running = sandboxes.map((sandbox) => start(sandbox, ["/bin/sleep", "600"]));
      const ends = await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
      for (const end of ends) assert.deepEqual(end, { cleanup_error: null });
      await Promise.all(running.map(({ exited }) => exited));
      assert.deepEqual(await listOwnerRecords(stateDir), []);
      assert.deepEqual(await readdir(join(stateDir, "sandboxes")), []);
      assert.equal(readFileSync("/proc/self/mountinfo", "utf8").includes(stateDir), false);
      if (!rooted) return;
      for (const name of ["sandboxes", "uids"]) assert.deepEqual(await readdir(join(runtimeRoot, name)), []);
      assert.deepEqual(uids.flatMap(processesOfUid), []);
      assert.equal(readFileSync("/proc/self/mountinfo", "utf8").includes(runtimeRoot), false);
    },
  },
];
