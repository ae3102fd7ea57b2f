// SPDX-License-Identifier: Apache-2.0
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import { isAlive, processIdentity } from "../../src/host/process.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

// Batches without tasks: what surrounds the work, without the work.
let root: string;
let tasks: string;
let out: string;
beforeEach(() => {
  root = tempDir();
  tasks = join(root, "tasks.jsonl");
  out = join(root, "out");
  writeFileSync(tasks, "");
});

it("an allowed empty batch ends with 0, a summary on stdout and in the directory", async () => {
  const { code, stdout } = await rollcall(["run", tasks, "--out", out, "--allow-empty", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ event: "summary", ...(JSON.parse(readFileSync(join(out, "summary.json"), "utf8")) as object) });
  expect(existsSync(join(out, ".lock"))).toBe(false);
});

it("stdout holds only the table, stderr the rest", async () => {
  const { stdout, stderr } = await rollcall(["run", tasks, "--out", out, "--allow-empty"]);
  expect(stdout).toMatch(/^┌[^]*wall time[^]*┘\n$/);
  expect(stderr).toBe(`results: ${out}\n`);
});

it("--on-end gets the summary's path as its last argument; its failure is a warning only", async () => {
  const good = await rollcall(["run", tasks, "--out", out, "--allow-empty", "--on-end", `cp -t ${JSON.stringify(root)}`]);
  expect(good.code).toBe(0);
  expect(existsSync(join(root, "summary.json"))).toBe(true);
  const bad = await rollcall(["run", tasks, "--out", out, "--allow-empty", "--on-end", "sh -c 'exit 7'"]);
  expect(bad).toMatchObject({ code: 0, stderr: expect.stringContaining("warning: --on-end: it ended with exit code 7") as string });
});

it("--detach gives the terminal back with the pid, and the batch goes on by itself", async () => {
  const marker = join(root, "marker");
  const command = `sh -c 'while [ ! -e ${marker} ]; do sleep 0.05; done'`;
  const { code, stdout, stderr } = await rollcall(["run", tasks, "--out", out, "--allow-empty", "--detach", "--on-end", command]);
  expect(code).toBe(0);
  const pid = Number(/running detached as process (\d+)/.exec(stdout)?.[1]);
  expect(stderr).toContain(`tail -f ${join(out, "rollcall.log")}`);
  const detached = processIdentity(pid);
  expect(detached).not.toBeNull(); // held by its --on-end
  writeFileSync(marker, "");
  await vi.waitFor(() => expect(isAlive(detached!)).toBe(false), { timeout: 20_000 });
  expect(readFileSync(join(out, "rollcall.log"), "utf8")).toContain(`results: ${out}`);
});
