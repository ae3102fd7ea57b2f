// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Claim, RunEnd } from "../../src/activation/ports.ts";
import type { Run } from "../queue/rig.ts";
import { activationOf, completedOf } from "../queue/rig.ts";
import { attemptOf } from "../support/result-documents.ts";
import { startChain, type ChainRig } from "./rig.ts";

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
  it("is seeded, run, verified and closed in this order, each once, and its result has the reward [A1]", async () => {
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

  it("gives its session the server's tools as one required grant, with the session's own token", async () => {
    const chain = await startChain();
    const seen: Claim[] = [];
    await chain.worker(completesBetween(chain, seen));
    chain.steps();
    await chain.add(activationOf("act-1", { tool_grants: [], max_attempts: 3 }));
    await chain.over("act-1");
    const { activation } = seen[0]!;
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

  it("whose session fails has another one, under the next attempt and a session of its own, and keeps each failure", async () => {
    const chain = await startChain();
    await chain.worker(async (claim): Promise<RunEnd> => {
      const { attempt } = await claim.ledger.takeAttempt();
      const completed = completedOf(claim.activation, claim.generation, attempt);
      if (attempt === 2) return { kind: "ended", ...(await chain.store.commit(completed)) };
      const failure = attemptFailure();
      const failed = attemptOf(attempt, { failure, status: "failed" });
      await chain.store.putAttempt("act-1", failed);
      return { kind: "ended", ...(await chain.store.commit({ ...completed, status: "failed", failure, attempts: [failed] })) };
    });
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

function attemptFailure() {
  return {
    failure_kind: "agent_run_error" as const,
    cause_code: "mcp_server_unreachable",
    server_names: [],
    stage: "agent" as const,
    failure_reason: "x",
    terminal: false,
    status_code: 502,
  };
}
