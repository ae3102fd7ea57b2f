// SPDX-License-Identifier: Apache-2.0
import { expect, it, vi } from "vitest";
import { admissionPolicy, loadSettings } from "../../src/config/load.ts";
import { completes, runsUntilStopped } from "../queue/rig.ts";
import { asked, startApiRig } from "./rig.ts";

it("queues one activation; it runs, and its state says so until it has ended", async () => {
  const rig = await startApiRig();
  const queued = await rig.call("/v1/activations", { body: asked("act-1") });
  expect(queued).toMatchObject({
    status: 202,
    body: { activations: [{ activation_id: "act-1", run_id: "run-1", outcome: "added" }] },
  });
  expect(await rig.call("/v1/activations/act-1")).toMatchObject({ status: 200, body: { state: "waiting", status: null } });

  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await vi.waitFor(
    async () => expect((await rig.call("/v1/activations/act-1")).body).toMatchObject({ state: "ended", status: "completed" }),
    {
      timeout: 30_000,
    },
  );
});

it("ids are derived where a producer names none, one run for all of a request", async () => {
  const rig = await startApiRig();
  const rows = ["a", "b"].map((task_id) => ({ task_id: { taskset: "office", task_id }, input: "do it" }));
  const { status, body } = await rig.call("/v1/activations?run_id=run-9", { body: rows });
  expect(status).toBe(202);
  expect(body.activations).toMatchObject([
    { activation_id: "act-run-9-a", run_id: "run-9", outcome: "added" },
    { activation_id: "act-run-9-b", run_id: "run-9", outcome: "added" },
  ]);
});

it("what a caller leaves out is as the server's configuration has it, model and tools above all [fault D1]", async () => {
  const settings = await loadSettings({
    env: { HOME: "/nowhere" },
    file: null,
    overrides: {
      model: { name: "small", base_url: "http://llm:8000/v1", api_key_env: "MY_KEY" },
      codex: { timeout_seconds: 1_800 },
      tool_grants: [
        { name: "office", type: "mcp", required: true, connection: { transport: "streamable_http", url: "http://tools:1/mcp" } },
      ],
      sandbox: { provider: "host", memory_mb: 700 },
    },
  });
  const rig = await startApiRig({ ports: { defaults: settings, policy: admissionPolicy(settings) } });
  const own = {
    model: { name: "large", base_url: "http://own:1/v1", api_key: "FAKE-key" },
    codex: { timeout_seconds: 5 },
    tool_grants: [],
  };
  const { reply_to: _, ...bare } = asked("act-1");
  const { status } = await rig.call("/v1/activations", { body: [bare, asked("act-2", own)] });
  expect(status).toBe(202);
  const queued = async (id: string) => (await rig.queues.activations.getJob(id))!.data.activation;
  expect(await queued("act-1")).toMatchObject({
    model: { name: "small", base_url: "http://llm:8000/v1", api_key_env: "MY_KEY" },
    codex: { timeout_seconds: 1_800 },
    tool_grants: [{ name: "office" }],
    sandbox: { limits: { memory_mb: 700 } },
    reply_to: "results",
  });
  expect((await queued("act-1"))["sandbox"]).not.toHaveProperty("provider"); // the workers' to say
  expect(await queued("act-2")).toMatchObject({
    model: { name: "large", base_url: "http://own:1/v1" },
    codex: { timeout_seconds: 5 },
    tool_grants: [],
  });

  const elsewhere = await rig.call("/v1/activations", { body: asked("act-3", { model: { base_url: "http://evil:1/v1" } }) });
  expect(elsewhere).toMatchObject({ status: 422, body: { errors: [{ code: "key_origin_not_allowed", path: "model.base_url" }] } });
});

it("a request of too many values is refused by their count [fault C6]", async () => {
  const rig = await startApiRig();
  const row = asked("act-1", { metadata: { many: Array.from({ length: 400_000 }, () => 0) } });
  expect(await rig.call("/v1/activations", { body: [asked("act-0"), row] })).toMatchObject({
    status: 413,
    body: { code: "request_too_large" },
  });
});

it("the same id sent again joins with the same content, and is refused with other content, naming what differs [R44]", async () => {
  const rig = await startApiRig();
  const one = asked("act-1", { model: { api_key: "key-one" } });
  await rig.call("/v1/activations", { body: one });
  expect((await rig.call("/v1/activations", { body: one })).body.activations).toMatchObject([{ outcome: "joined" }]);

  const other = { ...one, input: "do another thing", max_attempts: 1 };
  const conflict = await rig.call("/v1/activations", { body: [asked("act-2"), other] });
  expect(conflict.status).toBe(409);
  expect(conflict.headers.get("content-type")).toBe("application/problem+json");
  expect(conflict.body).toMatchObject({ code: "activation_conflict", status: 409 });
  expect(conflict.body.errors.map(({ path }: { path: string }) => path)).toEqual(expect.arrayContaining(["input", "max_attempts"]));
  expect((await rig.call("/v1/activations/act-2")).status).toBe(404); // nothing of the request was queued
  expect(JSON.stringify(conflict.body)).not.toContain("key-one");
});

it("the same POST without run_id twice is the same request: the run is that of what is there [fault D2]", async () => {
  const rig = await startApiRig();
  const { run_id: _, ...one } = asked("act-1");
  const first = await rig.call("/v1/activations", { body: one });
  const { run_id } = first.body.activations[0];
  expect(first).toMatchObject({ status: 202, body: { activations: [{ outcome: "added" }] } });

  const joined = { status: 202, body: { activations: [{ activation_id: "act-1", run_id, outcome: "joined" }] } };
  expect(await rig.call("/v1/activations", { body: one })).toMatchObject(joined);
  expect(await rig.call("/v1/activations?partial=true", { body: one })).toMatchObject(joined);
  expect(await rig.call("/v1/activations", { body: one, headers: { "idempotency-key": "k" } })).toMatchObject(joined);
  expect(await rig.call("/v1/activations", { body: { ...one, input: "other" } })).toMatchObject({
    status: 409,
    body: { errors: [{ path: "input" }] },
  });
  // What is named is meant.
  expect(await rig.call("/v1/activations?run_id=run-9", { body: one })).toMatchObject({
    status: 409,
    body: { errors: [{ path: "run_id" }] },
  });
});

it("two of the same POST at once make one activation, which both are answered [fault D2]", async () => {
  const rig = await startApiRig();
  const rows = Array.from({ length: 40 }, (_, index) => {
    const { run_id: _run, ...row } = asked(`act-${index}`);
    return row;
  });
  const answers = await Promise.all(Array.from({ length: 4 }, () => rig.call("/v1/activations", { body: rows })));
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
  const runs = answers.flatMap(({ body }) => body.activations.map(({ run_id }: { run_id: string }) => run_id));
  expect(new Set(runs).size).toBe(1);
  expect((await rig.call("/v1/runs")).body.runs).toMatchObject([{ run_id: runs[0] }]);
});

it("with partial what can be queued is, and each entry says what became of it", async () => {
  const rig = await startApiRig();
  await rig.call("/v1/activations", { body: asked("act-1") });
  const rows = [asked("act-1", { input: "other" }), asked("act-2", { inputs: "misspelt" }), asked("act-3")];
  const { status, body } = await rig.call("/v1/activations?partial=true", { body: rows });
  expect(status).toBe(202);
  expect(body.activations).toMatchObject([
    { activation_id: "act-1", outcome: "conflict", fields: ["input"] },
    { activation_id: "act-2", outcome: "refused", refusals: [{ path: "inputs" }] },
    { activation_id: "act-3", outcome: "added" },
  ]);
});

it("what cannot be run is refused with every reason at once, each with its field, and nothing is queued", async () => {
  const rig = await startApiRig();
  const bad = asked("act-2", { codex: { timeout_seconds: -1 }, sandbox: { provider: "moon" } });
  const { status, body } = await rig.call("/v1/activations", { body: [asked("act-1"), bad] });
  expect(status).toBe(422);
  expect(body).toMatchObject({ code: "activation_refused", title: "activation refused" });
  expect(body.errors).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ path: "[1].codex.timeout_seconds" }),
      expect.objectContaining({ path: "[1].sandbox.provider", code: "provider_not_allowed" }),
    ]),
  );
  expect((await rig.call("/v1/activations/act-1")).status).toBe(404);
});

it("cancels over HTTP in each state, and says what it did; unknown ones are 404 [D12]", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.call("/v1/activations", { body: [asked("waits"), asked("runs", { priority: "high" })] });
  let started = "";
  await rig.worker(
    runsUntilStopped((claim) => (started = claim.activation.activation_id)),
    { concurrency: 1 },
  );
  await vi.waitFor(() => expect(started).toBe("runs"), { timeout: 30_000 });

  expect((await rig.call("/v1/activations/waits?reason=no+more", { method: "DELETE" })).body).toMatchObject({
    state: "waiting",
    outcome: "done",
  });
  expect((await rig.call("/v1/activations/runs", { method: "DELETE" })).body).toMatchObject({ outcome: "asked" });
  for (const id of ["waits", "runs"])
    expect(await rig.ended(id)).toMatchObject({ status: "cancelled", failure: { cause_code: "cancelled" } });
  expect((await rig.ended("waits")).failure?.failure_reason).toContain("no more");
  expect((await rig.call("/v1/activations/waits", { method: "DELETE" })).body).toMatchObject({ state: "ended", outcome: "nothing" });
  expect(await rig.call("/v1/activations/never", { method: "DELETE" })).toMatchObject({
    status: 404,
    body: { code: "activation_unknown" },
  });
});
