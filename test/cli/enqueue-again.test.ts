// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import { startApiRig } from "../api/rig.ts";
import { completedOf, type Run } from "../queue/rig.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

const TOKEN = "tok-enqueued-again-4411";

it("what failed with secrets is told as such, with the command that runs it again from its task file, which does [fault D5]", async () => {
  const root = tempDir();
  const rig = await startApiRig();
  await rig.sentinel();
  const failsFirst: Run = async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    const completed = completedOf(activation, generation, attempt);
    const fails = activation.task_id.task_id === "secret" && generation === 0;
    const result = fails ? { ...completed, status: "failed" as const, response: null, cause_class: "agent" as const } : completed;
    return { kind: "ended", ...(await rig.store.commit(result)) };
  };
  await rig.worker(failsFirst, { facts: { providers: ["bubblewrap"], codex_versions: [PACKAGED_CODEX_VERSION] } });
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const grant = { type: "mcp", name: "office", required: true, connection: { transport: "streamable_http", url: "http://h/mcp", headers } };
  const tasks = join(root, "tasks.jsonl");
  const rows = [
    { id: "good", input: "x" },
    { id: "secret", input: "x", tool_grants: [grant] },
  ];
  writeFileSync(tasks, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const env = { ROLLCALL_API_KEY: rig.key, HOME: root };
  const through = ["--run-id", "run-1", "--server", rig.api.origin];

  expect(await rollcall(["enqueue", tasks, ...through], { env })).toMatchObject({ code: 0, stdout: "run run-1: 2 queued\n" });
  for (const task of ["good", "secret"]) await rig.ended(`act-run-1-${task}`);
  // What can come back is told to the pages beforehand.
  const { body } = await rig.call("/v1/runs/run-1/rows");
  const ended = (body as string)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { activation_id: string; retryable?: boolean });
  expect(Object.fromEntries(ended.map(({ activation_id, retryable }) => [activation_id, retryable]))).toEqual({
    "act-run-1-good": undefined,
    "act-run-1-secret": false,
  });
  expect((await rig.call("/v1/activations/act-run-1-secret/story")).body).toMatchObject({ not_retryable: "secrets_deleted" });
  expect((await rig.call("/v1/activations/act-run-1-good/story")).body).toMatchObject({ not_retryable: null });

  const retried = await rollcall(["retry", "run-1", "--server", rig.api.origin], { env });
  expect(retried).toMatchObject({
    code: 1,
    stdout: expect.stringContaining(`rollcall enqueue TASKS.jsonl --run-id run-1 --server ${rig.api.origin} --again failed`),
  });
  expect(await rollcall(["enqueue", tasks, ...through, "--again", "failed"], { env })).toMatchObject({
    code: 0,
    stdout: "run run-1: 1 queued, 1 of them again, 0 were there, 1 have ended before\n",
  });
  expect(await rig.ended("act-run-1-secret", 1)).toMatchObject({ status: "completed" });
  expect(await rollcall(["enqueue", tasks, ...through, "--again", "failed"], { env })).toMatchObject({
    code: 0,
    stdout: "run run-1: 0 queued, 0 were there, 2 have ended before\n",
  });
});
