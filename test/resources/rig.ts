// SPDX-License-Identifier: Apache-2.0
import { pino } from "pino";
import { onTestFinished, vi, expect } from "vitest";
import { startResourcesServer, type ResourcesServerOptions, type ResourcesStandIn } from "../../examples/stand-ins/resources-server.ts";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import type { SessionActivation } from "../../src/contract/activation.ts";
import type { Failure } from "../../src/contract/failure.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import type { EnqueueAnswer } from "../../src/queue/enqueue.ts";
import { readRolloutResult } from "../../src/resources/documents.ts";
import { enqueueRollouts } from "../../src/resources/enqueue-rollouts.ts";
import type { ResourcesLimits, ResourcesServer } from "../../src/resources/server.ts";
import { startRolloutSteps, type RolloutSteps } from "../../src/resources/steps.ts";
import { completedOf, startRig, TEST_KEYS, type Rig, type Run } from "../queue/rig.ts";
import { attemptOf } from "../support/result-documents.ts";

export const LIMITS: ResourcesLimits = {
  max_sessions: 8,
  max_failures: 3,
  verify_tries: 3,
  seed_timeout_ms: 20_000,
  verify_timeout_ms: 20_000,
  close_timeout_ms: 20_000,
  max_answer_bytes: 1024 * 1024,
  unreachable_ms: 60_000,
};

export const STEP_WORKER = { id: "steps", host: "test", version: "0", codex_version: null, sandbox_provider: null };

export interface ChainRig extends Rig {
  resources: ResourcesStandIn;
  server: ResourcesServer;
  steps(limits?: Partial<ResourcesLimits>): RolloutSteps;
  add(activation: SessionActivation, options?: { row?: Record<string, unknown>; again?: boolean }): Promise<EnqueueAnswer>;
  /** The result of a rollout that is over. */
  over(activationId: string, generation?: number): Promise<ActivationResult>;
  /** What the server was asked for, as `path status`, in order. */
  asked(rolloutId?: string): string[];
}

/** Redis, a store, a sentinel and a resources server; workers and steps are the test's. Ends with it, and so does `given`, which it may begin with. */
export async function startChain(
  options: ResourcesServerOptions = {},
  server: Partial<ResourcesServer> = {},
  given: Rig | null = null,
): Promise<ChainRig> {
  const rig = given ?? (await startRig());
  const resources = await startResourcesServer(options);
  onTestFinished(async () => {
    await resources.close();
    if (given === null) await rig.close();
  });
  const named: ResourcesServer = { url: resources.url, name: "resources", protocol: "session", mcp: true, ...server };
  await rig.sentinel();
  const steps = new Set<RolloutSteps>();
  onTestFinished(async () => {
    for (const one of steps) await one.close({ graceMs: 3_000 });
  });
  return {
    ...rig,
    resources,
    server: named,
    steps(limits = {}) {
      const one = startRolloutSteps({
        queues: rig.open(),
        store: rig.store,
        keys: TEST_KEYS,
        limits: { ...LIMITS, ...limits },
        worker: STEP_WORKER,
        log: pino({ level: "silent" }),
      });
      steps.add(one);
      return one;
    },
    async add(activation, { row = { task_id: activation.task_id.task_id }, again = false } = {}) {
      const parts = { queues: rig.queues, store: rig.store, keys: TEST_KEYS, server: named };
      const [answer] = await enqueueRollouts(parts, [{ activation, row }], { again });
      return answer!;
    },
    over: (activationId, generation = 0) =>
      vi.waitFor(
        async () => {
          const result = await readRolloutResult(rig.store, activationId);
          expect(result?.generation).toBe(generation);
          return result!;
        },
        { timeout: 60_000, interval: 50 },
      ),
    asked: (rolloutId) =>
      resources.calls.flatMap(({ path, status, rollout_id }) =>
        rolloutId === undefined || rollout_id === rolloutId ? [`${path} ${status}`] : [],
      ),
  };
}

/** Sessions of which those before the `last` attempt fail. */
export function failsBefore(last: number, store: ArtifactStore): Run {
  return async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    const completed = completedOf(activation, generation, attempt);
    if (attempt === last) return { kind: "ended", ...(await store.commit(completed)) };
    const failure: Failure = {
      failure_kind: "agent_run_error",
      cause_code: "mcp_server_unreachable",
      server_names: [],
      stage: "agent",
      failure_reason: "x",
      terminal: false,
      status_code: 502,
    };
    const failed = attemptOf(attempt, { failure, status: "failed" });
    await store.putAttempt(activation.activation_id, failed);
    return { kind: "ended", ...(await store.commit({ ...completed, status: "failed", failure, attempts: [failed] })) };
  };
}
