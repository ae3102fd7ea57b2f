// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { progressLine } from "../../src/rollout/progress.ts";
import { readTasks, type TaskRow } from "../../src/rollout/tasks.ts";
import { tempDir } from "../support/temp-dir.ts";

async function rowOf(row: object): Promise<TaskRow> {
  const path = join(tempDir(), "tasks.jsonl");
  writeFileSync(path, `${JSON.stringify(row)}\n`);
  const policy = { allow_providers: ["bubblewrap"], allow_key_env: ["OPENAI_API_KEY"] };
  const defaults = await loadSettings({ env: { HOME: "/h" }, file: null });
  for await (const each of readTasks({ path, runId: "run-1", defaults, toolGrants: [], policy, repeats: 1 }, "read")) return each;
  throw new Error("there is no row");
}

it("a row's task_data goes to the resources server as it is, with the request that the session answers", async () => {
  const messages = { responses_create_params: { input: [{ role: "user", content: "do it" }] } };
  const task_data = { sector: "Finance", responses_create_params: { input: [] } };
  const row = await rowOf({ id: "t", input: "do it", task_data });
  expect(row).toMatchObject({ ok: true });
  expect(row.ok && row.forServer).toEqual({ ...task_data, ...messages }); // an empty input of its own does not say what was asked
  const own = { responses_create_params: { input: "as given", temperature: 1 } };
  expect(await rowOf({ id: "t", input: "do it", task_data: own })).toMatchObject({ forServer: own });
  expect(await rowOf({ id: "t", input: "do it" })).toMatchObject({ forServer: messages });
  expect(await rowOf({ task_id: { taskset: "x", task_id: "t" }, input: "do it", task_data: { n: 1 } })).toMatchObject({
    ok: true,
    forServer: { n: 1 },
  });
});

it("a foreign row goes to the resources server whole, and with the prompt that was made of it", async () => {
  const gym = { id: "g", responses_create_params: { input: "as given", metadata: { a: "b" } }, expected: [1, 2], task_data: "its own" };
  expect(await rowOf(gym)).toMatchObject({ ok: true, forServer: gym, foreign: gym });
  const gdpval = {
    task_id: "v",
    sector: "Finance",
    prompt: "count it",
    rubric_json: "[]",
    responses_create_params: { input: [], metadata: {} },
  };
  const row = await rowOf(gdpval);
  expect(row).toMatchObject({ ok: true, foreign: gdpval });
  if (!row.ok) return;
  const { input } = row.activations[0]!;
  expect(input).toContain("count it");
  const asked = { metadata: {}, input: [{ role: "user", content: input }] };
  expect(row.forServer).toEqual({ ...gdpval, responses_create_params: asked });
});

it("task_data that is no object is refused", async () => {
  expect(await rowOf({ id: "t", input: "do it", task_data: ["x"] })).toMatchObject({ ok: false, problems: [{ path: "task_data" }] });
});

it("the progress of a run with a resources server tells how many rollouts are seeded and verified", () => {
  const phases = { waiting: 90, seeding: 3, activation: 4, verifying: 2, closing: 1 };
  const state = {
    total: 100,
    ended: 0,
    failed: 0,
    refused: 0,
    cancelled: 0,
    running: 4,
    phases,
    endedHere: 0,
    startedAt: 0,
    breaker: null,
    pause: null,
    refusing: null,
    budget: null,
  };
  expect(progressLine(state, 1_000)).toBe("0/100 done, 0 failed, 4 running, 3 seeding, 2 verifying");
});
