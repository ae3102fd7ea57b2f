// SPDX-License-Identifier: Apache-2.0
import type { FlowJob } from "bullmq";
import { contentDigest } from "../activation/content.ts";
import type { SealedActivation } from "../activation/seal.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { activationJobId } from "../contract/identity.ts";
import type { Failure } from "../contract/failure.ts";
import type { Status } from "../contract/result.ts";
import { ACTIVATIONS, FINAL, finalJobId, PREFIX, PRIORITIES } from "./names.ts";
import type { QueueSettings } from "./settings.ts";

/** Data of a job in `activations`. */
export interface ActivationJobData {
  activation: SealedActivation;
  generation: number;
  content_digest: string;
  /** ISO 8601 */
  enqueued_at: string;
  /** The producer owns attempts: once one has begun there is no other, whether or not it was charged. */
  single_attempt?: true;
}

/** Data of its parent in `final`: whatever an end needs when the activation's job is gone. Holds no secret. */
export interface FinalJobData extends Pick<
  SessionActivation,
  "activation_id" | "run_id" | "episode_id" | "task_id" | "reply_to" | "metadata"
> {
  agent_session_id: string | null;
  generation: number;
  content_digest: string;
  enqueued_at: string;
  /** Who goes on when its end is recorded: a job of `steps` that is added then. Only our own code sets it. */
  next_step?: NextStep;
}

/** A job of `steps`: wakes one rollout. */
export interface StepJobData {
  activation_id: string;
}

export interface NextStep extends StepJobData {
  job_id: string;
}

/** The same flow, whose jobs tell whoever takes them where they belong in a trace (W3C); BullMQ's telemetry reads it in this form. Pure. */
export function tracedFlow<F extends FlowJob>(flow: F, traceparent: string | undefined): F {
  if (traceparent === undefined) return flow;
  const telemetry = { metadata: JSON.stringify({ traceparent }) };
  const children = flow.children?.map((child) => tracedFlow(child, traceparent));
  return { ...flow, opts: { ...flow.opts, telemetry }, ...(children === undefined ? {} : { children }) };
}

/** What the activation's job returns to its parent. The result itself is in the store. */
export type ChildEnd =
  /** result.json exists. */
  | { kind: "committed"; status: Status }
  /** The mark was seen before anything ran. */
  | { kind: "cancelled" }
  /** It will not run again, and nothing was committed. */
  | { kind: "failed"; failure: Failure };

/** The flow of one activation: its job, and the parent that its end releases, whatever the end is. */
export function activationFlow(
  activation: SessionActivation,
  sealed: SealedActivation,
  options: { generation: number; enqueuedAt: string; settings: QueueSettings; singleAttempt?: boolean; nextStep?: NextStep },
): FlowJob & { data: FinalJobData } {
  const { generation, enqueuedAt, settings, singleAttempt = false, nextStep } = options;
  const { activation_id, run_id, episode_id, task_id, reply_to, metadata } = activation;
  const jobId = activationJobId(activation_id, generation);
  const shared = { generation, content_digest: contentDigest(activation), enqueued_at: enqueuedAt };
  const keep = { age: Math.ceil(settings.keep_ended_ms / 1_000) };
  // Never removeOnComplete: true. The id of a removed job could run again.
  const common = { removeOnComplete: keep, removeOnFail: keep, attempts: 1, stackTraceLimit: 0 };
  const child: ActivationJobData = { activation: sealed, ...shared, ...(singleAttempt ? { single_attempt: true } : {}) };
  return {
    name: "final",
    queueName: FINAL,
    prefix: PREFIX,
    data: {
      activation_id,
      run_id,
      episode_id,
      task_id,
      reply_to,
      metadata,
      agent_session_id: activation.agent_session_id ?? null,
      ...shared,
      ...(nextStep === undefined ? {} : { next_step: nextStep }),
    },
    opts: { ...common, jobId: finalJobId(jobId) },
    children: [
      {
        name: "activation",
        queueName: ACTIVATIONS,
        prefix: PREFIX,
        data: child,
        opts: { ...common, jobId, priority: PRIORITIES[activation.priority], ignoreDependencyOnFailure: true },
      },
    ],
  };
}
