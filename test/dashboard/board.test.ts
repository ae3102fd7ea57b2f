// SPDX-License-Identifier: Apache-2.0
import { expect, it, vi } from "vitest";
import type { Failure } from "../../src/contract/failure.ts";
import { deliver } from "../../src/queue/deliver.ts";
import { publishProgress } from "../../src/queue/progress.ts";
import { asked } from "../api/rig.ts";
import { activationOf, completedOf, completes, stopReason, type Run } from "../queue/rig.ts";
import { resultOf } from "../support/result-documents.ts";
import { startChain } from "../resources/rig.ts";
import { jobOf, jobsOf, KEYS, startBoardRig } from "./signed-in.ts";

const FAILURE: Failure = {
  failure_kind: "agent_run_error",
  cause_code: "mcp_server_unreachable",
  server_names: ["office"],
  stage: "agent",
  failure_reason: "office did not answer at 127.0.0.1:1",
  terminal: true,
  status_code: 502,
};
const LIMIT = 300_000;
/** Everything after it would be read from right to left. */
const TURNED = "a\u202Egnp";

it("a job says first which task it is, how it stands, which worker and what last; live while it runs; and links to its pages", async () => {
  const { rig, board } = await startBoardRig();
  await rig.sentinel();
  const run: Run = async ({ activation, generation, ledger, signal }) => {
    const { attempt } = await ledger.takeAttempt();
    if (activation.activation_id === "act-runs") {
      await publishProgress(rig.queues, "act-runs", {
        stage: "running",
        attempt,
        note: "exec_command",
        counts: { turns: 1, tool_calls: 3, tokens: 99 },
      });
      const reason = await stopReason(signal);
      return { kind: "handed_back", reason: reason.kind };
    }
    const artifacts = [
      {
        path: "outputs/a b.txt",
        source: "/home/agent/a b.txt",
        kind: "output" as const,
        bytes: 3,
        sha256: "0",
        uri: "file:///x",
        quarantined: false,
      },
    ];
    const result = { ...completedOf(activation, generation, attempt), status: "failed" as const, failure: FAILURE, artifacts };
    return { kind: "ended", ...(await rig.store.commit(result)) };
  };
  const worker = await rig.worker(run, { facts: { worker_id: "w-board" } });
  await rig.call("/v1/activations", {
    key: KEYS.enqueue,
    body: [asked("act-runs"), asked("act-fails", { reply_to: "results-a", task_id: { taskset: "office", task_id: TURNED } })],
  });
  await rig.ended("act-fails", 0, 60_000);

  await vi.waitFor(
    async () =>
      expect((await jobsOf(board, "activations", "&status=active"))[0]?.data["last_event"]).toMatchObject({ note: "exec_command" }),
    { timeout: 60_000 },
  );
  const [runs] = await jobsOf(board, "activations", "&status=active");
  expect(runs).toMatchObject({
    id: "act-runs",
    name: "office/act-runs · running · exec_command",
    data: {
      task: "office/act-runs",
      run_id: "run-1",
      status: "running",
      attempt: 0,
      worker: expect.stringContaining("w-board") as string,
    },
    progress: { stage: "running", note: "exec_command", tool_calls: 3, tokens: 99 },
    externalUrl: { href: "/activations/act-runs" },
  });
  expect(await (await board("/api/queues/activations/act-runs/logs")).json()).toEqual([
    expect.stringMatching(/^\d{4}-.*Z attempt 0 running: exec_command \(turns 1, tool calls 3, tokens 99\)$/),
  ]);
  await publishProgress(rig.queues, "act-runs", { stage: "running", attempt: 0, note: "message" });
  expect((await jobOf(board, "activations", "act-runs")).name).toBe("office/act-runs · running · message");

  const title = "office/a\\u202egnp · failed · agent_run_error/mcp_server_unreachable";
  for (const [queue, id] of [
    ["activations", "act-fails"],
    ["final", "f-act-fails"],
    ["results-a", "act-fails"],
  ] as const) {
    const listed = (await jobsOf(board, queue)).find((job) => job.id === id)!;
    expect(listed).toMatchObject({
      name: title,
      failedReason: "agent_run_error/mcp_server_unreachable",
      data: { pages: { run: "/runs/run-1" } },
    });
    const alone = await jobOf(board, queue, id);
    expect(alone.failedReason).toBe(`agent_run_error/mcp_server_unreachable: ${FAILURE.failure_reason}`);
    expect(alone.data).toMatchObject({
      failure_reason: FAILURE.failure_reason,
      asked: { input: "do it" },
      ended: { artifacts: [{ at: "/v1/artifacts/act-fails/0/outputs/a%20b.txt", bytes: 3 }], artifacts_in_all: 1 },
    });
  }
  expect(await (await board("/api/queues/activations/workers")).json()).toMatchObject({ workers: [{ id: "w-board" }] });
  for (const path of ["activations/wait", "activations/meta", "activations/act-none", "nothing/act-fails", "activations/act-fails%3Alock"])
    expect([path, (await board(`/api/queues/${path}`)).status]).toEqual([path, 404]);
  await worker.close({ graceMs: 3_000 });
}, 150_000);

it("megabytes stay out of the page: neither lists nor a job's own page show or read them [D11]", async () => {
  const { rig, board } = await startBoardRig({ max_result_bytes: 10_000_000 });
  const large = "x".repeat(3_000_000);
  await rig.call("/v1/activations", { key: KEYS.enqueue, body: asked("act-large", { input: large.slice(0, 1_000_000) }) });
  const response = { text: large } as never;
  for (let left = 12; left > 0; left -= 1) await deliver(rig.queues, "results-a", resultOf(`act-${left}`, { response }), rig.store);
  const bytesOut = async (): Promise<number> => Number(/total_net_output_bytes:(\d+)/.exec(await rig.queues.redis.info("stats"))![1]);

  await board("/api/queues");
  const before = await bytesOut();
  const sizes = [];
  for (const path of [
    "/api/queues?activeQueue=results-a&jobsPerPage=100000",
    "/api/queues?activeQueue=results-a&status=waiting&jobsPerPage=1000",
    "/api/queues?activeQueue=activations",
    "/api/queues/results-a/act-7",
    "/api/queues/activations/act-large",
  ])
    sizes.push((await (await board(path)).text()).length);
  expect(Math.max(...sizes)).toBeLessThan(LIMIT / 10);
  expect((await bytesOut()) - before).toBeLessThan(LIMIT);
  expect((await jobsOf(board, "results-a")).length).toBe(10);
  expect((await jobOf(board, "activations", "act-large")).data).toMatchObject({
    data_bytes: expect.toSatisfy((bytes) => Number(bytes) > 1_000_000) as number,
  });
});

it("a page of a queue has at most a hundred jobs, and results queues appear by themselves, at most fifty", async () => {
  const { rig, board } = await startBoardRig();
  await rig.queues.activations.addBulk(
    Array.from({ length: 130 }, (_, index) => ({ name: "a", data: {} as never, opts: { jobId: `act-${index}` } })),
  );
  for (let index = 0; index < 60; index += 1) await deliver(rig.queues, `results-${index}`, resultOf(`r-${index}`), rig.store);
  expect((await jobsOf(board, "activations", "&status=waiting&jobsPerPage=1000000")).length).toBe(100);
  expect((await jobsOf(board, "activations", "&status=waiting&jobsPerPage=100&page=2")).length).toBe(30);
  expect(await jobsOf(board, "activations", "&status=waiting&jobsPerPage=100&page=100000000000000000000000")).toEqual([]);
  const { queues } = (await (await board("/api/queues")).json()) as { queues: { name: string; readOnlyMode: boolean }[] };
  expect(queues.slice(0, 3).map(({ name }) => name)).toEqual(["activations", "final", "steps"]);
  expect(queues).toHaveLength(53);
  expect(queues.every(({ readOnlyMode }) => readOnlyMode)).toBe(true);
});

it("a job of `steps` shows its rollout: where it is with its resources server, and its reward at last", async () => {
  const { rig, board } = await startBoardRig();
  const chain = await startChain({}, {}, rig);
  await chain.add(activationOf("act-1.x"));
  const [waits] = await jobsOf(board, "steps");
  expect(waits).toMatchObject({ name: "office/act-1.x · waiting", externalUrl: { href: "/activations/act-1.x" } });
  await chain.worker(completes(chain.store));
  chain.steps();
  expect((await rig.call("/v1/activations/act-1.x/result?wait=60", { key: KEYS.read })).status).toBe(200);
  await vi.waitFor(
    async () =>
      expect((await jobOf(board, "steps", waits!.id)).data).toMatchObject({ status: "completed", ended: { reward: 0, verified: true } }),
    { timeout: 30_000 },
  );
  for (const id of ["act-1.x", "meta", `${waits!.id}:lock`])
    expect([id, (await board(`/api/queues/steps/${encodeURIComponent(id)}`)).status]).toEqual([id, 404]);
});
