// SPDX-License-Identifier: Apache-2.0
import type { Status } from "../../src/contract/result.ts";
import type { Injection } from "./schedule.ts";

/** works: ends completed with a finish call. The others: its tool server is down; its command takes longer than it may. */
export type TaskKind = "works" | "server_down" | "times_out";

/** A fault as it was injected. Times are ms since 1970. */
export interface InjectedFault extends Injection {
  from: number;
  to: number;
  /** Processes of workers that it hit. */
  pids: number[];
  /** Activations that it hit. */
  activations: string[];
  /** What was done, for people; why not, when it was not. */
  detail: string;
  injected: boolean;
}

/** One attempt that began: seen by its sandbox's owner record, its attempt.json or its model calls. */
export interface PhysicalRun {
  activation_id: string;
  attempt: number;
  /** null: nobody saw whose it was. */
  worker_pid: number | null;
  began_at: number;
  /** How many sandboxes were made for it. */
  sandboxes: number;
  /** Codex threads that asked the model under its capture key. */
  threads: string[];
  /** attempt.json. */
  saved: {
    status: Status;
    failure_kind: string | null;
    cause_code: string | null;
    terminal: boolean;
    charged: boolean;
    ended_at: number;
  } | null;
}

/** A result.json. */
export interface StoredEnd {
  activation_id: string;
  task_id: string;
  generation: number;
  status: Status;
  /** e.g. "provider_unavailable/turn_failed", "wall_clock"; "" when there is none. */
  cause: string;
  capture_key: string;
  attempt: number;
  /** Attempts that it tells of. */
  attempts: number[];
  /** Successful finish calls of the committed attempt, as the result has them; null = no evidence. */
  finish_calls: number | null;
  committed_at: number;
  /** It is not what was first seen there. */
  changed: boolean;
}

/** What the tool server itself noted of a finish call that it served. */
export interface FinishCall {
  task_id: string;
  thread_id: string | null;
  at: number;
}

/** Everything the oracle looks at. */
export interface RunFacts {
  tasks: { task_id: string; kind: TaskKind; max_attempts: number }[];
  /** Lines of results.jsonl, as far as they matter. */
  lines: { task_id: string; capture_key: string; status: Status }[];
  ends: StoredEnd[];
  /** Activation ids in the results queue; null = Redis could not be asked. */
  delivered: string[] | null;
  runs: PhysicalRun[];
  finishes: FinishCall[];
  faults: InjectedFault[];
  /** Activations that somebody asked to cancel, and what the answer was. */
  cancels: { activation_id: string; outcome: string }[];
  /** When this process itself could not run: the machine stood still for everybody. */
  stalls: { from: number; to: number }[];
  /** Workers and producers that ended though nobody ended them; the last producer with a wrong exit code. */
  unexpected_ends: { who: string; at: number; detail: string }[];
  /** Nothing ended for too long, and the run was given up. */
  stuck: string | null;
  left: Record<"processes" | "directories" | "records" | "sockets" | "mounts" | "locks" | "cgroups" | "temporary", string[]>;
  secrets: {
    /** Files and command lines that hold bytes of one. */
    found: string[];
    /** What the same search did not find though it was put there; must be empty. */
    missed_controls: string[];
  };
}
