// SPDX-License-Identifier: Apache-2.0
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { findCodex, PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import { findBubblewrap } from "../../src/sandbox/bubblewrap-binary.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap.ts";
import { createHostProvider } from "../../src/sandbox/host.ts";
import { processIdentity } from "../../src/host/process.ts";
import type { SandboxProvider, SandboxSpec } from "../../src/sandbox/types.ts";
import { processesNaming } from "../support/live-processes.ts";
import { tempDir } from "../support/temp-dir.ts";

// A sandbox that does not come, and a program that goes while its worker lives.
const ROOT = process.getuid?.() === 0;
const vendored = (await findCodex({ version: PACKAGED_CODEX_VERSION })).bwrap;
const bwrap = await findBubblewrap({ path: process.env["PATH"] ?? "", ...(vendored === null ? {} : { vendored }) });
let base: string;
beforeEach(() => {
  base = tempDir();
  chmodSync(base, 0o711); // sandboxes' users pass
});

const stateDir = (): string => join(base, "state");
const left = (): string[] => (existsSync(join(stateDir(), "sandboxes")) ? readdirSync(join(stateDir(), "sandboxes")) : []);

function bubblewrap(bwrapPath: string | null): SandboxProvider {
  return createBubblewrapProvider({ stateDir: stateDir(), bwrapPath, runtimeRoot: join(base, "shared") });
}

function specOf(id: string, hostDir = "/usr", only: string[] | null = []): SandboxSpec {
  const owner = { activation_id: id, attempt: 0, process: processIdentity()! };
  return {
    id,
    owner,
    runtime: { key: "tool", hostDir, ...(only === null ? {} : { only }) },
    limits: {},
    network: { mode: "shared" },
    listeners: [],
  };
}

/** Stands in for a bwrap that waits for a disk: it says what it is, and does nothing more. */
function hangingBubblewrap(real: string): string {
  const path = join(base, "bwrap");
  const script = `#!/bin/sh\ncase "$1" in --version|--help) exec ${real} "$1";; esac\ntrap '' TERM\nsleep 300\n`;
  writeFileSync(path, script, { mode: 0o755 });
  return path;
}

describe.skipIf(bwrap === null)("bubblewrap that hangs", () => {
  it("is a failed launch after the time it has to begin, and leaves no process and no directory [E7]", async () => {
    const sandbox = await bubblewrap(hangingBubblewrap(bwrap!)).create(specOf("hangs"));
    const { workdir, tmp } = sandbox.inside;
    const mark = readdirSync(join(base, ROOT ? "shared" : "state", "sandboxes"))
      .find((name) => name.startsWith("hangs."))!
      .split(".")[1]!;
    const running = sandbox.exec(["/bin/true"], { env: { TMPDIR: tmp }, cwd: workdir, beginWithinMs: 300 });
    await expect.poll(() => processesNaming(mark).length).toBeGreaterThan(0);
    expect(await running.exited).toEqual({ started: false, detail: "bubblewrap did not begin the command within 0.3 s" });
    expect(await sandbox.destroy()).toEqual({ cleanup_error: null });
    expect(processesNaming(mark)).toEqual([]);
    expect(left().filter((name) => name.endsWith(".json"))).toEqual([]);
  });

  it("does not end a command that began in time", async () => {
    const sandbox = await bubblewrap(bwrap).create(specOf("begins"));
    const running = sandbox.exec(["/bin/sleep", "1"], { env: {}, cwd: sandbox.inside.workdir, beginWithinMs: 500 });
    running.stdout.resume();
    running.stderr.resume();
    expect(await running.exited).toEqual({ started: true, code: 0, signal: null });
    expect(await sandbox.destroy()).toEqual({ cleanup_error: null });
  });
});

describe.each([
  ["bubblewrap", () => bubblewrap(bwrap)],
  ["host", () => createHostProvider({ stateDir: stateDir() })],
] as const)("a sandbox that nobody waits for any more (%s)", (_name, provider) => {
  it("is given up, and what was begun of it is given back, whenever that is said [E7]", async () => {
    for (const turns of [0, 1, 2, 4, 8, 16, 32, 64]) {
      const controller = new AbortController();
      const making = provider()
        .create(specOf(`n${turns}`), controller.signal)
        .catch((error: unknown) => error as Error);
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      controller.abort(new Error("too late"));
      const made = await making;
      if (made instanceof Error) expect(made.message).toMatch(/too late/);
      else expect(await made.destroy()).toEqual({ cleanup_error: null });
    }
    await expect.poll(left).toEqual([]);
    if (ROOT && existsSync(join(base, "shared"))) expect(readdirSync(join(base, "shared", "uids"))).toEqual([]);
  });
});

describe.skipIf(!ROOT || bwrap === null)("the place for root workers' sandboxes", () => {
  it("is refused with its path when a file is there [A15]", async () => {
    writeFileSync(join(base, "shared"), "in the way");
    const { ok, summary } = await bubblewrap(bwrap).probe();
    expect({ ok, summary }).toEqual({
      ok: false,
      summary: expect.stringMatching(/shared as the place .* is a file, not a directory; put/) as string,
    });
  });

  it("is made again when it is removed while a sandbox runs; what runs can be ended [A15]", async () => {
    const provider = bubblewrap(bwrap);
    const first = await provider.create(specOf("first"));
    const running = first.exec(["/bin/sleep", "60"], { env: {}, cwd: first.inside.workdir });
    running.stdout.resume();
    running.stderr.resume();
    rmSync(join(base, "shared"), { recursive: true });
    const second = await provider.create(specOf("second"));
    const other = second.exec(["/bin/touch", "made"], { env: {}, cwd: second.inside.workdir });
    other.stdout.resume();
    other.stderr.resume();
    expect(await other.exited).toEqual({ started: true, code: 0, signal: null });
    for (const sandbox of [first, second]) expect(await sandbox.destroy()).toEqual({ cleanup_error: null });
    expect(left()).toEqual([]);
  });
});

describe.skipIf(!ROOT || bwrap === null)("the copy of a program that a root worker's sandboxes run", () => {
  it.each([
    ["removed", (copy: string) => rmSync(copy, { recursive: true })],
    ["emptied of a file", (copy: string) => rmSync(join(copy, "bin", "tool"))],
    ["cut short", (copy: string) => truncateSync(join(copy, "bin", "tool"), 3)],
  ])("is made anew when it was %s [E21]", async (_what, damage) => {
    const hostDir = join(base, "program");
    mkdirSync(join(hostDir, "bin"), { recursive: true });
    writeFileSync(join(hostDir, "bin", "tool"), "#!/bin/sh\necho whole\n", { mode: 0o700 }); // so it is copied, not linked
    const provider = bubblewrap(bwrap);
    const say = async (id: string): Promise<string> => {
      const sandbox = await provider.create(specOf(id, hostDir, null));
      const running = sandbox.exec([`${sandbox.runtimeDir}/bin/tool`], { env: {}, cwd: sandbox.inside.workdir });
      running.stderr.resume();
      let said = "";
      for await (const chunk of running.stdout) said += String(chunk);
      await sandbox.destroy();
      return said;
    };
    expect(await say("first")).toBe("whole\n");
    const runtimes = join(base, "shared", "runtimes");
    damage(
      join(
        runtimes,
        readdirSync(runtimes).find((name) => name.startsWith("tool-"))!,
      ),
    );
    expect(await say("second")).toBe("whole\n");
    expect(readdirSync(runtimes).filter((name) => name.startsWith("."))).toEqual([]);
  });
});
