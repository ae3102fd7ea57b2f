// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { findThere } from "../../src/cli/control-server.ts";
import { findTarget } from "../../src/cli/control-target.ts";
import { createClient } from "../../src/client/index.ts";
import { deriveActivationId } from "../../src/contract/identity.ts";
import { startApiRig, type ApiRig } from "../api/rig.ts";
import { TEST_KEYS } from "../queue/rig.ts";
import { tempDir } from "../support/temp-dir.ts";

const ANY = { run: false };

async function rigWith(runId: string, tasks: readonly string[], suffix = ""): Promise<ApiRig> {
  const rig = await startApiRig();
  await queue(rig, runId, tasks, suffix);
  return rig;
}

async function queue(rig: ApiRig, runId: string, tasks: readonly string[], suffix = ""): Promise<void> {
  const body = tasks.map((task_id) => ({
    activation_id: `${deriveActivationId(runId, task_id)}${suffix}`,
    task_id: { taskset: "office", task_id },
    input: "do it",
  }));
  // A busy machine's Redis may be too slow for the API (503): the same request again is the same.
  await vi.waitFor(async () => expect((await rig.call(`/v1/activations?run_id=${runId}`, { body })).status).toBe(202), { timeout: 30_000 });
}

/** The same question through Redis and through a server. */
function askers(rig: ApiRig) {
  const client = createClient({ url: rig.api.origin, key: rig.key });
  const desk = { queues: rig.queues, store: rig.store, keys: TEST_KEYS, run: null, out: null, close: () => Promise.resolve() };
  const nameOf = (target: object): string =>
    "activation_id" in target ? String(target.activation_id) : (target as { found: { activation_id: string } }).found.activation_id;
  return [async (id: string) => nameOf(await findTarget(desk, id, ANY)), async (id: string) => nameOf(await findThere(client, id, ANY))];
}

it("a task id names its activation, also where its name is none of an activation [fault D6]", async () => {
  const rig = await rigWith("run-1", ["a-sum", "b/c d"]);
  await queue(rig, "run-2", ["memo"], "-r0");
  for (const ask of askers(rig)) {
    expect(await ask("act-run-1-a-sum")).toBe("act-run-1-a-sum");
    expect(await ask("a-sum")).toBe("act-run-1-a-sum");
    expect(await ask("b/c d")).toBe(deriveActivationId("run-1", "b/c d"));
    expect(await ask("memo")).toBe("act-run-2-memo-r0");
  }
});

it("a task of several activations, and a name that is nearly one, are told with what may be meant [fault D6]", async () => {
  const rig = await rigWith("run-1", ["a-sum", "report"]);
  await queue(rig, "run-2", ["a-sum"]);
  for (const ask of askers(rig)) {
    await expect(ask("a-sum")).rejects.toMatchObject({
      code: "id_ambiguous",
      message: expect.stringMatching(/act-run-2-a-sum, act-run-1-a-sum/),
    });
    await expect(ask("reprot")).rejects.toMatchObject({ code: "id_unknown", message: expect.stringMatching(/did you mean report/) });
    await expect(ask("run-3")).rejects.toMatchObject({ code: "id_unknown", message: expect.stringMatching(/did you mean run-[12]/) });
  }
});

it("rows that name their own ids are found by their task through the run's directory [fault D6]", async () => {
  const out = tempDir();
  const rig = await startApiRig();
  await rig.call("/v1/activations", {
    body: { activation_id: "my-own", run_id: "run-1", task_id: { taskset: "office", task_id: "memo" }, input: "do it" },
  });
  const row = { task: "memo", task_id: "memo", sha256: "", activations: [{ activation_id: "my-own", repeat: 0 }], row: null };
  writeFileSync(join(out, "rows.jsonl"), `${JSON.stringify(row)}\n`);
  const manifest = {
    schema: "rollcall.manifest/1",
    run_id: "run-1",
    created_at: "",
    tasks: { path: "t", sha256: "" },
    settings: {},
    versions: {},
  };
  writeFileSync(join(out, "manifest.json"), JSON.stringify(manifest));
  const client = createClient({ url: rig.api.origin, key: rig.key });
  expect(await findThere(client, "memo", { run: false, out })).toMatchObject({ found: { activation_id: "my-own" } });
  await expect(findThere(client, "mem", { run: false, out })).rejects.toThrow(/did you mean memo/);
  const desk = { queues: rig.queues, store: rig.store, keys: TEST_KEYS, run: manifest as never, out, close: () => Promise.resolve() };
  expect(await findTarget(desk, "memo", ANY)).toMatchObject({ activation_id: "my-own" });
});
