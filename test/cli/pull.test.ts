// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import type { Manifest } from "../../src/rollout/output-dir.ts";
import { asked, startApiRig } from "../api/rig.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { activationOf, completedOf, completes, startRig, TEST_KEYS, type Run } from "../queue/rig.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it("a server's runs are listed, and one is pulled into a directory on which report, compare, export, collect and explain work [fault D7]", async () => {
  const root = tempDir();
  const rig = await startApiRig();
  await rig.sentinel();
  const env = { ROLLCALL_API_KEY: rig.key, HOME: root };
  const through = ["--server", rig.api.origin];
  const output: Run = async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    const { activation_id } = activation;
    const kind = { kind: "output", source: "answer.txt", quarantined: false } as const;
    const artifact = await rig.store.put(
      activation_id,
      attempt,
      "outputs/answer.txt",
      Readable.from([Buffer.from(`of ${activation_id}`)]),
      kind,
    );
    const result = { ...completedOf(activation, generation, attempt), artifacts: [artifact] };
    return { kind: "ended", ...(await rig.store.commit(result)) };
  };
  const worker = await rig.worker(output);
  await rig.call("/v1/activations", { body: ["a", "b"].map((id) => asked(`act-${id}`, { task_id: { taskset: "office", task_id: id } })) });
  await rig.call("/v1/activations", { body: asked("other", { run_id: "run-2" }) });
  for (const id of ["act-a", "act-b", "other"]) await rig.ended(id);
  await worker.close({ graceMs: 0 });
  await rig.call("/v1/activations", { body: asked("act-c", { task_id: { taskset: "office", task_id: "c" } }) });

  const runs = await rollcall(["runs", ...through], { env });
  expect(runs, runs.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/^run-1: 2 of 3 ended, .*\nrun-2: 1 of 1 ended, /) });

  const out = join(root, "pulled");
  const pulled = await rollcall(["pull", "run-1", "--out", out, ...through], { env });
  expect(pulled, pulled.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining("pulled 2 of 3 results of run run-1") });
  expect(JSON.parse(readFileSync(join(out, "manifest.json"), "utf8")) as Manifest).toMatchObject({
    run_id: "run-1",
    pulled_from: rig.api.origin,
  });
  expect(readFileSync(join(out, "artifacts/act-a/attempt-0/outputs/answer.txt"), "utf8")).toBe("of act-a");
  expect(readFileSync(join(out, "task_b/repeat_0/answer.txt"), "utf8")).toBe("of act-b");

  for (const words of [
    ["report", out],
    ["compare", out, out],
    ["export", out, "--format", "atif"],
    ["collect", "--out", out],
    ["explain", "a", "--out", out],
  ]) {
    const ended = await rollcall(words, { env });
    expect(ended, `${words[0]}: ${ended.stderr}`).toMatchObject({ code: 0 });
  }
  for (const id of ["act-b", "b"])
    expect(await rollcall(["explain", id, ...through], { env })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("act-b: completed"),
    });
  expect(await rollcall(["explain", "act-c", ...through], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("act-c has not ended"),
  });

  await rig.worker(output);
  await rig.ended("act-c");
  expect(await rollcall(["pull", "run-1", "--out", out, ...through], { env })).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("pulled 3 of 3 results"),
  });
  expect(await rollcall(["pull", "run-2", "--out", out, ...through], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("choose another --out"),
  });
});

it("a run of a Redis is listed and pulled too, and its files stay in the store [fault D7]", async () => {
  const root = tempDir();
  const rig = await startRig({}, { tcp: { password: "redis-password" } });
  onTestFinished(() => rig.close());
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await enqueueActivations(rig.queues, [activationOf("act-a")], { keys: TEST_KEYS });
  await rig.ended("act-a");
  if (rig.redis.target.kind !== "url") throw new Error("the test wants Redis on TCP");
  const env = { REDIS_URL: rig.redis.target.url, ROLLCALL_ARTIFACTS_DIR: rig.storeRoot, HOME: root };
  const runs = await rollcall(["runs", "--json"], { env });
  expect(runs, runs.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(runs.stdout)).toMatchObject({ run_id: "run-1", ended: 1, open: 0 });
  const out = join(root, "pulled");
  const pulled = await rollcall(["pull", "run-1", "--out", out], { env });
  expect(pulled, pulled.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining("pulled 1 of 1 results") });
  expect((await rollcall(["explain", "act-a", "--out", out], { env })).stdout).toContain("act-a: completed");
});
