// SPDX-License-Identifier: Apache-2.0
import type { RunEnd } from "./ports.ts";
import type { AttemptReport } from "./settle.ts";

/** The stages of an attempt whose times are worth knowing, in their order. */
export const STAGES = [
  "sandbox",
  "place",
  "skills",
  "preflight",
  "plan",
  "configure",
  "codex",
  "classify",
  "collect",
  "destroy",
  "commit",
] as const;
type StageName = (typeof STAGES)[number];

/** Does the work of a stage, and answers or throws what it does. */
type Stage = <T>(name: StageName, work: () => T | Promise<T>) => Promise<T>;

/** Whoever counts and traces attempts. Its own parts never throw, never wait, and keep nothing of what they are given. */
export interface AttemptTelemetry {
  readonly stage: Stage;
  /** An attempt has its number: it runs. */
  begun(): void;
  /** Settled. `secretsReplaced`: places of its texts in which a secret stood. */
  ended(report: AttemptReport, end: RunEnd, secretsReplaced: number): void;
  /** Places in which the last look before a commit still found a secret. */
  canaryHits(count: number): void;
  /** W3C trace context of the attempt, to be handed on to model and tool servers; undefined: nobody traces. */
  traceparent(): string | undefined;
}

export const noAttemptTelemetry: AttemptTelemetry = {
  stage: async (_name, work) => work(),
  begun: () => undefined,
  ended: () => undefined,
  canaryHits: () => undefined,
  traceparent: () => undefined,
};
