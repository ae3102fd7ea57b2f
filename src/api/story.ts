// SPDX-License-Identifier: Apache-2.0
import { z } from "@hono/zod-openapi";
import { explain, explainAttempt, type ExplainedAttempt } from "../activation/explain.ts";
import { beginning, shortened } from "../activation/shortened.ts";
import { gapSchema, toolCallRecordSchema } from "../contract/observation.ts";
import { attemptSchema, resultSchema, type ActivationResult, type Attempt } from "../contract/result.ts";
import type { TaskId } from "../contract/identity.ts";
import { retryAnswer, stateReply, type StateReply } from "./messages.ts";

const MOST_ATTEMPTS = 20;
const MOST_CALLS = 500;
const MOST_GAPS = 100;
const MOST_THREADS = 50;
const MOST_MODEL_CALLS = 200;
const MOST_ARTIFACTS = 500;
const MOST_DETAIL = 500;
const MOST_ANSWER = 4_000;
const MOST_VERIFICATION = 20_000;

const { status, incomplete_cause, cause_class, failure, artifacts, usage, timing, task_id, rollout } = resultSchema.shape;
const ending = z.object({ status, incomplete_cause, cause_class, failure });
const leftOut = z.int().min(0);

const storyAttempt = z.object({
  ...attemptSchema.pick({
    attempt: true,
    capture_key: true,
    worker: true,
    started_at: true,
    ended_at: true,
    charged: true,
    evidence: true,
    usage: true,
  }).shape,
  /** It may have called the model, and nothing is known of what it took. */
  usage_unknown: z.boolean(),
  servers: z.array(
    z.object({
      name: z.string(),
      required: z.boolean().nullable(),
      state: z.enum(["granted", "skipped", "unavailable", "unknown"]),
      detail: z.string().nullable(),
    }),
  ),
  /** In the order of their times. */
  tool_calls: z.array(
    z.object(toolCallRecordSchema.omit({ kind: true, invocation_id: true, sandbox_id: true, timing_source: true }).shape),
  ),
  ending,
  gaps: z.array(z.object(gapSchema.shape)),
  /** What was left out here, and is in the result. */
  left_out: z.object({ tool_calls: leftOut, gaps: leftOut, threads: leftOut, model_calls: leftOut }),
});

/** One activation for a person: what is known of it now, in the order in which it happened. */
export const storySchema = z
  .object({
    activation_id: z.string(),
    run_id: z.string().nullable(),
    /** Where it is; null: Redis knows nothing of it any more, only the store does. */
    now: stateReply.nullable(),
    task_id: z.object(task_id.shape).nullable(),
    /** Of one that has ended: why it cannot be run again from here; null = it can, or has not ended. */
    not_retryable: retryAnswer.shape.why,
    attempts: z.array(storyAttempt),
    /** Null until it has ended, and when its result is not in the store any more; like all that follows. */
    ending: ending.nullable(),
    ended_at: z.string().nullable(),
    /** Of all attempts together. */
    usage,
    timing,
    /** The last words of the model, cut. */
    answer: z.string().nullable(),
    /** Of the attempt that `artifacts_of` names. */
    artifacts,
    artifacts_of: z.int().min(0).nullable(),
    /** Only of a rollout with a resources server that is over: how it was scored, and how it went with that server. */
    rollout: z
      .object({
        ...rollout.unwrap().shape,
        /** Null: it was not scored. */
        reward: z.number().nullable(),
        /** The verifier's own fields, as JSON for people, cut. */
        verification: z.string().nullable(),
        left_out: z.object({ verification_characters: leftOut }),
      })
      .optional(),
    left_out: z.object({ attempts: leftOut, artifacts: leftOut, answer_characters: leftOut }),
  })
  .openapi("Story");
export type Story = z.infer<typeof storySchema>;

/** Of one that has ended. Pure. */
export function endedStory(result: ActivationResult, now: StateReply | null, not_retryable: Story["not_retryable"]): Story {
  const { activation_id, run_id, task_id, attempts, ending, ended_at, usage, timing, artifacts } = explain(result);
  const answer = lastWords(result);
  return {
    activation_id,
    run_id,
    now,
    task_id,
    not_retryable,
    attempts: attempts.slice(-MOST_ATTEMPTS).map(bounded),
    ending,
    ended_at,
    usage,
    timing,
    answer: answer === null ? null : beginning(answer, MOST_ANSWER),
    artifacts: artifacts.slice(0, MOST_ARTIFACTS),
    artifacts_of: artifacts.length === 0 ? null : result.episode_id.attempt,
    ...rolloutStory(result),
    left_out: {
      attempts: over(attempts.length, MOST_ATTEMPTS),
      artifacts: over(artifacts.length, MOST_ARTIFACTS),
      answer_characters: over(answer?.length ?? 0, MOST_ANSWER),
    },
  };
}

/** Of one that has not, or whose result is gone; `attempts`: those that are over and still in the store. Pure. */
export function openStory(
  now: StateReply,
  task_id: TaskId | null,
  attempts: readonly Attempt[],
  not_retryable: Story["not_retryable"] = null,
): Story {
  return {
    activation_id: now.activation_id,
    run_id: now.run_id,
    now,
    task_id,
    not_retryable,
    attempts: attempts.slice(-MOST_ATTEMPTS).map((attempt) => bounded(explainAttempt(attempt))),
    ending: null,
    ended_at: null,
    usage: null,
    timing: null,
    answer: null,
    artifacts: [],
    artifacts_of: null,
    left_out: { attempts: over(attempts.length, MOST_ATTEMPTS), artifacts: 0, answer_characters: 0 },
  };
}

function bounded({ tool_calls, gaps, servers, evidence, ...attempt }: ExplainedAttempt): z.infer<typeof storyAttempt> {
  return {
    ...attempt,
    evidence:
      evidence === null
        ? null
        : { ...evidence, threads: evidence.threads.slice(0, MOST_THREADS), model_calls: evidence.model_calls.slice(0, MOST_MODEL_CALLS) },
    servers: servers.map((server) => ({ ...server, detail: server.detail === null ? null : shortened(server.detail, MOST_DETAIL) })),
    tool_calls: tool_calls.slice(0, MOST_CALLS),
    gaps: gaps
      .slice(0, MOST_GAPS)
      .map(({ detail, ...gap }) => (detail === undefined ? gap : { ...gap, detail: shortened(detail, MOST_DETAIL) })),
    left_out: {
      tool_calls: over(tool_calls.length, MOST_CALLS),
      gaps: over(gaps.length, MOST_GAPS),
      threads: over(evidence?.threads.length ?? 0, MOST_THREADS),
      model_calls: over(evidence?.model_calls.length ?? 0, MOST_MODEL_CALLS),
    },
  };
}

function rolloutStory({ rollout: facts, reward, verification }: ActivationResult): Pick<Story, "rollout"> {
  if (facts === undefined) return {};
  const text = verification === undefined ? null : JSON.stringify(verification, null, 2);
  return {
    rollout: {
      ...facts,
      reward: reward ?? null,
      verification: text === null ? null : beginning(text, MOST_VERIFICATION),
      left_out: { verification_characters: over(text?.length ?? 0, MOST_VERIFICATION) },
    },
  };
}

function lastWords({ response }: ActivationResult): string | null {
  const message = response?.output.findLast((item) => item.type === "message");
  return message === undefined ? null : message.content.map(({ text }) => text).join("");
}

function over(count: number, most: number): number {
  return Math.max(0, count - most);
}
