// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { runLines } from "../../src/cli/show-status.ts";

it("status says why a worker takes nothing", () => {
  const status = { waiting: 3, running: 1, parked: 0, delayed: 0, ended: { completed: 2 }, paused: false, pause: null, limit: null };
  const worker = {
    worker_id: "w-1",
    host: "h",
    pid: 7,
    providers: [],
    codex_versions: [],
    key_ids: [],
    schema_minor: 0,
    store_id: "s",
    classes: [],
    running: 1,
    lease_ends_in_ms: 60_000,
    held_back: "disk: 1 MB left at /tmp, 1024 wanted",
  };
  const lines = (held_back: string | null): string[] => runLines("run-1", status, [{ ...worker, held_back }], { open: null, openings: [] });
  expect(lines(worker.held_back).at(-1)).toMatch(/^ {2}w-1: process 7 on h, 1 running, .*; takes nothing: disk: 1 MB left/);
  expect(lines(null).join("\n")).not.toContain("takes nothing");
});
