// SPDX-License-Identifier: Apache-2.0
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";

const WORKER = { id: "w1", host: "h", version: "0.1.0", codex_version: "0.144.4", sandbox_provider: "host" };

export function resultOf(activation_id: string, facts: Partial<ActivationResult> = {}): ActivationResult {
  return {
    schema: "rollcall.result/1",
    activation_id,
    run_id: "run-1",
    generation: 0,
    agent_session_id: null,
    episode_id: { rollout_id: "r1", attempt: 0 },
    capture_key: "r1",
    task_id: { taskset: "office", task_id: "../../x" },
    status: "completed",
    response: null,
    failure: null,
    incomplete_cause: null,
    cause_class: null,
    evidence: null,
    observations: { source: "codex", records: [], gaps: [] },
    attempts: [],
    artifacts: [],
    usage: null,
    timing: null,
    worker: WORKER,
    ended_at: "2026-11-29T16:00:00.000Z",
    metadata: {},
    ...facts,
  };
}

export function attemptOf(attempt: number, facts: Partial<Attempt> = {}): Attempt {
  return {
    attempt,
    capture_key: attempt === 0 ? "r1" : `r1-a${attempt}`,
    worker: WORKER,
    started_at: "2026-11-29T16:00:00.000Z",
    ended_at: "2026-11-29T16:01:00.000Z",
    status: "failed",
    incomplete_cause: null,
    cause_class: null,
    charged: true,
    failure: null,
    grants: [],
    evidence: null,
    usage: null,
    observations: { source: "codex", records: [], gaps: [] },
    ...facts,
  };
}
