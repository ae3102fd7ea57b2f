// SPDX-License-Identifier: Apache-2.0
import type { ArtifactStore } from "../artifacts/types.ts";
import type { SessionActivation } from "../contract/activation.ts";
import type { RefusedRow } from "../contract/refused.ts";
import type { ActivationResult } from "../contract/result.ts";
import type { LocalCopy } from "../references/reference.ts";
import type { BreakerMode } from "../queue/breaker-mode.ts";
import type { Used } from "../activation/ports.ts";
import type { BudgetState, RunBudget } from "../queue/budget.ts";
import type { BreakerState } from "../queue/breaker.ts";
import type { RefusingModel } from "../queue/model-limiter.ts";
import type { PauseMark } from "../queue/pause.ts";
import type { Phase } from "../resources/record.ts";
import type { Row } from "./task-row.ts";

/** Everything that a batch needs of the queue, the workers and the store; what is behind it is not its concern. */
export interface Fleet {
  /**
   * Adds activations, durably when it resolves. Same id and same content joins what is there. With `again`, ended ones
   * get a new generation. `rows`: by activation id, what a resources server is given of each; only a run that has one looks at it.
   */
  enqueue(activations: readonly SessionActivation[], options: { again: boolean; rows: ReadonlyMap<string, Row> }): Promise<EnqueueAnswer[]>;
  /** Has a row that cannot be queued counted among the ends of its run, and explained like them. */
  refuse(row: RefusedRow): Promise<void>;
  /** Where the files of results are. */
  readonly artifacts: Pick<ArtifactStore, "directory" | "open" | "size">;
  /** Has a file of this machine where workers find it, for activations that name it by its sha256. Throws "sha256_differs". */
  putInput(copy: LocalCopy): Promise<void>;
  /** Ends of the run's activations, from the beginning, repeated after a reconnect; returns when aborted. */
  follow(runId: string, options: { signal: AbortSignal }): AsyncIterable<{ activation_id: string; generation: number }>;
  /** Resolves when the model began to work on it, or when aborted; of one that never begins only when aborted. */
  untilBegun(activationId: string, options: { signal: AbortSignal }): Promise<void>;
  /** Ids of the committed results. */
  listEnded(): AsyncIterable<string>;
  readResult(activationId: string): Promise<ActivationResult | null>;
  /** How many of the run's activations are being worked on. */
  running(runId: string): Promise<number>;
  /** Of a run of which nothing more starts: how much still comes to its end. */
  ending(runId: string): Promise<number>;
  /** Of a run that has a resources server: how many rollouts it has to do with, by phase. */
  phases?(runId: string): Promise<Record<Phase, number>>;
  /** What the run does from now on when different activations fail alike; what an earlier start left is lifted. */
  setBreaker(runId: string, mode: BreakerMode): Promise<void>;
  breaker(runId: string): Promise<BreakerState>;
  /** Whether the queue has lost what {@link setBreaker} told it, and so all of the run: it was emptied, or came back without its data. */
  forgotten?(runId: string): Promise<boolean>;
  /** From now on nothing more of the run starts than this lets; `usedAtLeast`: what it is known to have used. */
  setBudget(runId: string, budget: RunBudget, usedAtLeast: Used): Promise<void>;
  budget(runId: string): Promise<BudgetState>;
  /** How long no worker has lived, in ms; null = one lives. */
  workersAbsentMs(): Promise<number | null>;
  /** Model servers that refuse sessions, and have served none since. */
  refusingModels(): Promise<RefusingModel[]>;
  /** Who paused the run; null when it is not paused. */
  pause(runId: string): Promise<PauseMark | null>;
  /** Starts workers in this process; nothing when it has none. */
  startWorkers(): Promise<void>;
  /** Takes nothing new, hands back what runs, uncharged. `now`: without waiting for orderly ends. Safe to call again. */
  stopWorkers(options: { now: boolean }): Promise<void>;
  close(): Promise<void>;
}

export interface EnqueueAnswer {
  activation_id: string;
  /** ended: it has ended before; conflict: queued with other content. */
  outcome: "added" | "joined" | "conflict" | "ended";
  /** Of a conflict: the fields that differ, when known. */
  fields?: readonly string[];
  /** What no live worker has. */
  no_worker_for?: string;
}
