// SPDX-License-Identifier: Apache-2.0
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { listOwnerRecords } from "../../src/sandbox/owner-record.ts";
import { fakeCommand } from "../support/fake-command.ts";

// Where things are kept: missing, in the way of something else, or gone in the middle.
const OK = "turn done";
/** The first task waits until its file `flag` is gone. */
const WAITS = `[ "$prompt" = waits ] && while [ -e flag ]; do sleep 0.05; done\nturn done`;

describe("the state directory and the artifacts directory", () => {
  it("are made with their parents [A15]", async () => {
    const command = await fakeCommand(OK);
    command.env["ROLLCALL_STATE_DIR"] = join(command.root, "a", "b", "state");
    command.env["ROLLCALL_ARTIFACTS_DIR"] = join(command.root, "c", "d", "artifacts");
    const { code, stderr } = await command.run([{ id: "t0", input: "x" }]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(existsSync(join(command.root, "a", "b", "state", "worker", "sandboxes"))).toBe(true);
    expect(existsSync(join(command.root, "c", "d", "artifacts", "_store.json"))).toBe(true);
  });

  it.each([
    ["ROLLCALL_STATE_DIR", "is a file", "thing"],
    ["ROLLCALL_STATE_DIR", "lies below a file", "thing/below/it"],
    ["ROLLCALL_ARTIFACTS_DIR", "is a file", "thing"],
    ["ROLLCALL_ARTIFACTS_DIR", "lies below a file", "thing/below/it"],
  ])("are refused at the start when what %s names %s, with the path and what to do [A15]", async (variable, _what, place) => {
    const command = await fakeCommand(OK);
    const path = join(command.root, place);
    writeFileSync(join(command.root, "thing"), "in the way");
    command.env[variable] = path;
    for (const provider of ["bubblewrap", "host"]) {
      rmSync(command.out, { recursive: true, force: true });
      const { code, stderr } = await command.run([{ id: "t0", input: "x" }], "--sandbox", provider);
      expect({ code, stderr }).toMatchObject({ code: 2 });
      expect(stderr).toContain(path);
      expect(stderr).toMatch(
        variable === "ROLLCALL_STATE_DIR" ? /a part of the path is a file.*set state_dir/ : /artifact directory .*Choose another/,
      );
    }
  });
});

describe("a directory that is removed in the middle of a run", () => {
  it.each([
    ["the state directory", "state", "host"],
    ["the records and directories of sandboxes", "state/worker", "host"],
    ["the artifacts directory", "out/artifacts", "host"],
    ["the artifacts directory", "out/artifacts", "bubblewrap"],
  ])("costs at most the session that runs: %s (%s, %s) [A15]", async (_what, place, provider) => {
    const command = await fakeCommand(WAITS);
    const flag = join(command.root, "flag");
    writeFileSync(flag, "");
    const rows = [{ id: "t0", input: "waits", files: [{ path: "flag", from: flag }] }, ...["t1", "t2"].map((id) => ({ id, input: "x" }))];
    const artifacts = join(command.out, "artifacts");
    const run = command.start(rows, "--sandbox", provider, "--concurrency", "1");
    const begun = (): boolean =>
      existsSync(artifacts) && readdirSync(artifacts, { recursive: true }).some((path) => /stderr/.test(String(path)));
    await vi.waitFor(() => expect([begun(), run.child.exitCode]).toEqual([true, null]), { timeout: 40_000 });
    const [record] = await listOwnerRecords(join(command.root, "state", "worker"));
    rmSync(join(command.root, place), { recursive: true });
    rmSync(join(record!.directory, "work", "flag"), { force: true });
    const { code, stderr } = await run.ended;
    const ends = Object.fromEntries([...command.results()].map(([id, { status }]) => [id, status]));
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(ends).toEqual({ t0: expect.any(String) as string, t1: "completed", t2: "completed" });
    const again = await command.run(rows, "--sandbox", provider, "--concurrency", "1");
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("3 done before; nothing is left to run") as string });
  });
});
