// SPDX-License-Identifier: Apache-2.0
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { startResourcesServer } from "../../examples/stand-ins/resources-server.ts";
import type { Claim, RunEnd, StopReason } from "../../src/activation/ports.ts";
import { cancelRun } from "../../src/queue/cancel.ts";
import { keys, lockKey } from "../../src/queue/names.ts";
import { setBudget } from "../../src/queue/budget.ts";
import { pauseRun, resumeRun } from "../../src/queue/pause.ts";
import { countPhases, readRollout } from "../../src/resources/record.ts";
import { deferred } from "../../src/rollout/waiting.ts";
import { everythingIn } from "../support/redis-contents.ts";
import { activationOf, completedOf, stopReason, type Run } from "../queue/rig.ts";
import { failsBefore, startChain, type ChainRig } from "./rig.ts";

const SEED = "/seed_session 200";
const VERIFY = "/verify 200";
const CLOSE = "/close_session 200";

/** Says when each activation ran, among the calls of the resources server. */
function completesBetween(chain: ChainRig, seen: Claim[]): Run {
  return async (claim) => {
    seen.push(claim);
    const { attempt } = await claim.ledger.takeAttempt();
    return { kind: "ended", ...(await chain.store.commit(completedOf(claim.activation, claim.generation, attempt))) };
  };
}

describe("a rollout behind a resources server", () => {
  it("is seeded, run, verified and closed in this order, each once, and its result has the reward", async () => {
    const order: string[] = [];
    const chain = await startChain({ onAnswered: ({ path }) => order.push(path) });
    const seen: Claim[] = [];
    const run = completesBetween(chain, seen);
    await chain.worker((claim) => {
      order.push("activation");
      return run(claim);
    });
    chain.steps();
    const row = { task_id: "t1", sector: "Finance", rubric_json: "[]" };
    expect(await chain.add(activationOf("act-1", { task_id: { taskset: "office", task_id: "t1" } }), { row })).toMatchObject({
      outcome: "added",
    });
    const result = await chain.over("act-1");
    expect(order).toEqual(["/seed_session", "activation", "/verify", "/close_session"]);
    expect(chain.asked()).toEqual([SEED, VERIFY, CLOSE]);
    expect(result).toMatchObject({
      status: "completed",
      reward: 0, // it never called finish
      verification: { submitted: [], missing: [] },
      rollout: { verified: true, verifications: 1, verification_failure: null, cleanup_error: null },
    });
    expect(Object.keys(result.verification!)).not.toContain("sector"); // sent back by the server, not its own
    const [seed, verify, close] = chain.resources.calls.map(({ body }) => body);
    expect(seed).toEqual({
      resources_session_id: expect.stringMatching(/^resources-session-[0-9a-f]{32}$/) as string,
      episode_id: { rollout_id: "r-act-1", attempt: 0 },
      task_id: { taskset: "office", task_id: "t1" },
      task_data: row,
    });
    expect(verify).toEqual({
      ...row,
      responses_create_params: undefined,
      response: expect.objectContaining({ object: "response" }) as object,
    });
    expect(close).toEqual({ resources_session_id: seed!["resources_session_id"], episode_id: seed!["episode_id"] });
    expect(chain.resources.openSessions()).toEqual([]);
  });

  it("gives its session the server's tools as one required grant, with the session's own token, which Redis never holds in clear [C8]", async () => {
    const chain = await startChain();
    const seen: Claim[] = [];
    const run = completesBetween(chain, seen);
    let whileOpen = "";
    await chain.worker(async (claim) => {
      whileOpen = await everythingIn(chain.queues.redis);
      return run(claim);
    });
    chain.steps();
    await chain.add(activationOf("act-1", { tool_grants: [], max_attempts: 3 }));
    await chain.over("act-1");
    const { activation } = seen[0]!;
    expect(whileOpen).toContain("session_open");
    for (const secret of chain.resources.secrets) expect(whileOpen).not.toContain(secret.split(".")[1]);
    expect(activation.tool_grants).toEqual([
      {
        type: "mcp",
        name: "office",
        required: true,
        connection: {
          transport: "streamable_http",
          url: `${chain.resources.url}/mcp`,
          headers: { "X-NeMo-Gym-Session-Token": chain.resources.secrets[0] },
        },
      },
    ]);
    expect(activation).toMatchObject({ max_attempts: 1, reply_to: null, episode_id: { rollout_id: "r-act-1", attempt: 0 } });
  });

  it("whose worker is lost has another session, though nobody closed the attempt that was lost", async () => {
    const chain = await startChain();
    const lost = { worker_id: "lost" };
    const frozen = await chain.worker(
      async (claim): Promise<RunEnd> => {
        await claim.ledger.takeAttempt();
        await chain.queues.redis.del(lockKey("act-1")); // as if its claim had run out
        return new Promise<RunEnd>(() => undefined);
      },
      { facts: lost, concurrency: 1 },
    );
    chain.steps();
    await chain.add(activationOf("act-1"));
    await vi.waitFor(async () => expect(await chain.queues.redis.hget(keys.ledger("act-1"), "open")).toBe("0"), { timeout: 30_000 });
    void frozen.close({ graceMs: 1 });
    await chain.worker(completesBetween(chain, []));
    const result = await chain.over("act-1", 1);
    expect(result).toMatchObject({ status: "completed", episode_id: { attempt: 1 }, rollout: { verified: true } });
    expect(chain.asked()).toEqual([SEED, CLOSE, SEED, VERIFY, CLOSE]);
  });

  it("whose session fails has another one, under the next attempt and a session of its own, and keeps each failure", async () => {
    const chain = await startChain();
    await chain.worker(failsBefore(2, chain.store));
    chain.steps();
    await chain.add(activationOf("act-1"));
    const result = await chain.over("act-1", 2);
    expect(result).toMatchObject({ status: "completed", episode_id: { rollout_id: "r-act-1", attempt: 2 }, rollout: { verified: true } });
    expect(result.attempts.flatMap(({ attempt, failure }) => (failure === null ? [] : [attempt]))).toEqual([0, 1]);
    expect(chain.asked()).toEqual([SEED, CLOSE, SEED, CLOSE, SEED, VERIFY, CLOSE]);
    const sessions = chain.resources.calls.filter(({ path }) => path === "/seed_session").map(({ session_id }) => session_id);
    expect(new Set(sessions).size).toBe(3);
    expect(chain.resources.calls.map(({ capture_key }) => capture_key).filter((key) => key !== null)).toEqual([
      "r-act-1",
      "r-act-1-a1",
      "r-act-1-a2",
      "r-act-1-a2",
    ]);
  });
});

describe("rollouts together", () => {
  it("have no more sessions open at one server than it may have, whoever does their steps, and all come to their end", async () => {
    let most = 0;
    const chain = await startChain({ onAnswered: () => (most = Math.max(most, chain.resources.openSessions().length)) });
    await chain.worker(completesBetween(chain, []), { concurrency: 8 });
    chain.steps({ max_sessions: 2 });
    chain.steps({ max_sessions: 2 });
    const ids = Array.from({ length: 6 }, (_, n) => `act-${n}`);
    await Promise.all(ids.map((id) => chain.add(activationOf(id))));
    for (const id of ids) expect(await chain.over(id)).toMatchObject({ rollout: { verified: true } });
    expect(most).toBe(2);
    expect(chain.asked().sort()).toEqual([...ids.map(() => CLOSE), ...ids.map(() => SEED), ...ids.map(() => VERIFY)]);
    await vi.waitFor(async () =>
      expect(await countPhases(chain.queues, "run-1")).toEqual({ waiting: 0, seeding: 0, activation: 0, verifying: 0, closing: 0 }),
    );
  });

  it("join what is there, are told apart by their content, and begin anew only when asked to", async () => {
    const chain = await startChain();
    const row = { task_id: "act-1", n: 1 };
    expect(await chain.add(activationOf("act-1"), { row })).toMatchObject({ outcome: "added" });
    expect(await chain.add(activationOf("act-1"), { row })).toMatchObject({ outcome: "joined" });
    expect(await chain.add(activationOf("act-1"), { row: { ...row, n: 2 } })).toEqual({
      activation_id: "act-1",
      outcome: "conflict",
      fields: ["row"],
    });
    expect(await chain.add(activationOf("act-1", { input: "another" }), { row })).toMatchObject({ outcome: "conflict", fields: ["input"] });
    await chain.worker(completesBetween(chain, []));
    chain.steps();
    await chain.over("act-1");
    expect(await chain.add(activationOf("act-1"), { row })).toMatchObject({ outcome: "ended" });
    expect(chain.asked()).toEqual([SEED, VERIFY, CLOSE]);
    expect(await chain.add(activationOf("act-1"), { row, again: true })).toMatchObject({ outcome: "added" });
    expect(await chain.over("act-1", 1)).toMatchObject({ episode_id: { attempt: 1 }, generation: 1, rollout: { verified: true } });
    expect(chain.asked()).toEqual([SEED, VERIFY, CLOSE, SEED, VERIFY, CLOSE]);
  });

  it("wait for a server that cannot be connected to, without counting it", async () => {
    const chain = await startChain();
    const port = Number(new URL(chain.server.url).port);
    await chain.resources.close();
    await chain.worker(completesBetween(chain, []));
    chain.steps({ max_failures: 1 });
    await chain.add(activationOf("act-1"));
    await vi.waitFor(async () => expect((await readRollout(chain.queues, "act-1"))!.record.unreachable_since).not.toBeNull(), {
      timeout: 30_000,
    });
    const back = await startResourcesServer({ port });
    onTestFinished(() => back.close());
    expect(await chain.over("act-1")).toMatchObject({ status: "completed", episode_id: { attempt: 0 }, rollout: { verified: true } });
  });

  it("are cancelled with their run: those that wait for the server have no session, those that have one lose it", async () => {
    const chain = await startChain();
    const running = deferred<void>();
    await chain.worker(async (claim): Promise<RunEnd> => {
      const { attempt } = await claim.ledger.takeAttempt();
      running.resolve();
      const { mark } = (await stopReason(claim.signal)) as Extract<StopReason, { kind: "cancelled" }>;
      const cancelled = { ...completedOf(claim.activation, claim.generation, attempt), status: "cancelled" as const };
      return { kind: "ended", ...(await chain.store.commit({ ...cancelled, metadata: { by: mark.by } })) };
    });
    chain.steps({ max_sessions: 1 });
    for (const id of ["act-1", "act-2", "act-3"]) await chain.add(activationOf(id));
    await running.promise;
    await cancelRun(chain.queues, "run-1", { by: "test", at: "", reason: "enough" });
    for (const id of ["act-1", "act-2", "act-3"])
      expect(await chain.over(id)).toMatchObject({ status: "cancelled", rollout: { verified: false } });
    expect(chain.asked()).toEqual([SEED, CLOSE]);
  });

  it("are not seeded while their run is paused", async () => {
    const chain = await startChain();
    await chain.worker(completesBetween(chain, []));
    await pauseRun(chain.queues, "run-1", { by: "test", at: "", reason: "" });
    chain.steps();
    await chain.add(activationOf("act-1"));
    await vi.waitFor(async () => expect(await chain.queues.steps.getDelayedCount()).toBe(1), { timeout: 30_000 });
    expect(chain.asked()).toEqual([]);
    await resumeRun(chain.queues, "run-1");
    await chain.queues.steps.promoteJobs(); // it would look again by itself in ten seconds
    await chain.over("act-1");
    expect(chain.asked()).toEqual([SEED, VERIFY, CLOSE]);
  });

  it("are not seeded when their run's budget is spent", async () => {
    const chain = await startChain();
    await chain.worker(completesBetween(chain, []));
    const unlimited = { max_model_calls: null, max_tokens: null, starts_for_ms: null };
    await setBudget(chain.queues, "run-1", { ...unlimited, max_tokens: 1 }, { model_calls: 0, tokens: 1 });
    chain.steps();
    await chain.add(activationOf("act-1"));
    await vi.waitFor(async () => expect(await chain.queues.steps.getDelayedCount()).toBe(1), { timeout: 30_000 });
    expect(chain.asked()).toEqual([]);
    await setBudget(chain.queues, "run-1", unlimited, { model_calls: 0, tokens: 0 });
    await chain.queues.steps.promoteJobs();
    await chain.over("act-1");
    expect(chain.asked()).toEqual([SEED, VERIFY, CLOSE]);
  });

  it("go on elsewhere when the process that waits for their server stops: what it waited for is asked again", async () => {
    const asked = deferred<void>();
    const chain = await startChain({
      faultFor: ({ path, nth }) => (path === "/verify" && nth === 0 ? { kind: "hang" } : undefined),
      onAnswered: ({ path }) => path === "/verify" && asked.resolve(),
    });
    await chain.worker(completesBetween(chain, []));
    const first = chain.steps();
    await chain.add(activationOf("act-1"));
    await asked.promise;
    await first.close({ graceMs: 3_000 });
    chain.steps();
    expect(await chain.over("act-1")).toMatchObject({ rollout: { verified: true, verifications: 1 } });
    expect(chain.asked()).toEqual([SEED, "/verify null", VERIFY, CLOSE]);
  });

  it("whose row was removed from the store end and say so, before their session or after it", async () => {
    const chain = await startChain();
    const rows = (): string[] => readdirSync(join(chain.storeRoot, "_inputs")).map((name) => join(chain.storeRoot, "_inputs", name));
    await chain.add(activationOf("act-1"));
    rows().forEach((path) => rmSync(path));
    const run = completesBetween(chain, []);
    await chain.worker((claim) => {
      rows().forEach((path) => rmSync(path));
      return run(claim);
    });
    chain.steps();
    const failure = { failure_kind: "persistence_failed", failure_reason: expect.stringMatching(/no longer has the row/) as string };
    expect(await chain.over("act-1")).toMatchObject({ status: "failed", failure: { ...failure, stage: "seed" } });
    await chain.add(activationOf("act-2"));
    expect(await chain.over("act-2")).toMatchObject({ status: "completed", rollout: { verified: false, verification_failure: failure } });
    expect(chain.asked()).toEqual([CLOSE, SEED, CLOSE]);
  });

  it("of a server that knows no sessions by id send it their whole rows, and close nothing [R5]", async () => {
    const chain = await startChain({}, { protocol: "row" });
    const seen: Claim[] = [];
    await chain.worker(completesBetween(chain, seen));
    chain.steps();
    const row = { task_id: "act-1", _ng_rollout_id: "x", responses_create_params: { input: "hello" } };
    await chain.add(activationOf("act-1"), { row });
    expect(await chain.over("act-1")).toMatchObject({ reward: 0, rollout: { protocol: "row", verified: true } });
    expect(chain.asked()).toEqual([SEED, VERIFY]);
    expect(chain.resources.calls[0]!.body).toEqual(row);
    const { response, ...sent } = chain.resources.calls[1]!.body;
    expect(sent).toEqual(row);
    expect(response).toMatchObject({ output: [expect.objectContaining({ type: "message" })] });
    expect(seen[0]!.activation.tool_grants).toMatchObject([
      { name: "office", required: true, connection: { url: `${chain.resources.url}/mcp` } },
    ]);
  });
});
