// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import type { FakeCommand } from "../support/fake-command.ts";
import { linesOf, ROWS, started } from "./command-rig.ts";

// The producer is the worker too, and its Redis dies with it. Everything real but Codex and the resources server.

/** Everything of the final results that does not say when, where and how often. */
function finalOf(command: FakeCommand): object[] {
  return [...command.results().values()]
    .map(({ task_id, status, reward, verification, rollout, response, failure }) => ({
      task_id,
      status,
      reward,
      verification: { ...verification, deliverables_dir: null },
      verified: rollout?.verified,
      said: JSON.stringify(response?.output),
      failure,
    }))
    .sort((a, b) => a.task_id.task_id.localeCompare(b.task_id.task_id));
}

function deliverablesOf({ root }: FakeCommand): string[] {
  return readdirSync(join(root, "deliverables"), { recursive: true, encoding: "utf8" }).sort();
}

it("a producer that is killed at 30 and at 70 percent leaves the files of an undisturbed run, and no session open [E19]", async () => {
  const [quiet, killed] = [await started(), await started()];
  const undisturbed = quiet.command.run(ROWS, ...quiet.flags);
  for (const share of [3, 7]) {
    const run = killed.command.start(ROWS, ...killed.flags);
    await vi.waitFor(() => expect(linesOf(killed.command)).toBeGreaterThanOrEqual(share), { timeout: 90_000, interval: 20 });
    run.child.kill("SIGKILL");
    await run.ended;
    expect(linesOf(killed.command)).toBeLessThan(ROWS.length);
  }
  const last = await killed.command.run(ROWS, ...killed.flags);
  expect({ code: last.code, stderr: last.stderr }).toMatchObject({ code: 0 });
  expect(await undisturbed).toMatchObject({ code: 0 });

  expect(finalOf(killed.command)).toEqual(finalOf(quiet.command));
  expect(deliverablesOf(killed.command)).toEqual(deliverablesOf(quiet.command));
  const lines = readFileSync(join(killed.command.out, "results.jsonl"), "utf8").trim().split("\n");
  expect(lines).toHaveLength(ROWS.length);
  expect(JSON.parse(readFileSync(join(killed.command.out, "summary.json"), "utf8"))).toMatchObject({
    total: 10,
    missing: 0,
    unverified: 0,
  });
  expect(killed.resources.openSessions()).toEqual([]);
  expect(quiet.resources.calls).toHaveLength(3 * ROWS.length);
});

it("Ctrl-C hands rollouts back; the same command goes on with a session of its own, not counted as a failure [D4]", async () => {
  const { command, resources, flags } = await started();
  command.codex('sleep 60\nturn "never"');
  const rows = ROWS.slice(0, 2);
  const run = command.start(rows, ...flags);
  await vi.waitFor(
    () =>
      expect(
        readdirSync(join(command.out, "artifacts"), { recursive: true })
          .map(String)
          .filter((name) => name.endsWith("events.jsonl")),
      ).toHaveLength(2),
    {
      timeout: 60_000,
    },
  );
  run.child.kill("SIGINT");
  expect(await run.ended).toMatchObject({ code: 75 });
  command.codex('turn "did it"');
  const again = await command.run(rows, ...flags);
  expect({ code: again.code, stderr: again.stderr }).toMatchObject({ code: 0 });
  for (const { id } of rows) {
    const result = command.results().get(id)!;
    expect(result).toMatchObject({ status: "completed", episode_id: { attempt: 1 }, rollout: { verified: true } });
    expect(result.attempts.map(({ charged }) => charged)).toEqual([false, expect.anything()]);
  }
  expect(resources.openSessions()).toEqual([]);
});
