// SPDX-License-Identifier: Apache-2.0
import { startupCause } from "../codex/startup.ts";
import type { SessionEnd, Verdict } from "../codex/verdict.ts";
import type { SessionFacts } from "../codex/session.ts";
import type { CauseCode, Failure } from "../contract/failure.ts";
import type { CauseClass, IncompleteCause, Status } from "../contract/result.ts";
import type { SandboxExit } from "../sandbox/types.ts";
import type { CancelMark } from "./ports.ts";
import type { Stopped } from "./run-codex.ts";

/** How an attempt ended, in the words of the result. */
export interface Outcome {
  status: Status;
  failure: Failure | null;
  incomplete_cause: IncompleteCause | null;
  cause_class: CauseClass | null;
}

/** What classification looks at. All texts are redacted and bounded already. */
export interface ClassifyInput {
  exit: SandboxExit;
  stopped: Stopped;
  facts: SessionFacts;
  verdict: Verdict;
  /** The verdict's error text, shown in the failure. */
  errorText: string;
  /** All of stderr that was kept: what Codex says of a server may lie before a long body it quotes. */
  stderr: string;
  /** Its end, at most 2,000 characters, for people. */
  stderrTail: string;
  grantedServers: readonly string[];
}

/** The end of a sandboxed process as the verdict wants it. */
export function sessionEnd(exit: SandboxExit, stopped: Stopped): SessionEnd {
  const timedOut = stopped?.kind === "wall_clock";
  return exit.started ? { code: exit.code, signal: exit.signal, timedOut } : { code: null, signal: null, timedOut };
}

/** Decides what the attempt's end is called and whose it is. Pure. The order is the order of certainty. */
export function classify(input: ClassifyInput): Outcome {
  const { exit, stopped, verdict } = input;
  if (stopped?.kind === "cancelled") return cancelledOutcome(stopped.mark);
  if (stopped?.kind === "shutdown" || stopped?.kind === "lock_lost") return handedBackOutcome(stopped.kind);
  if (!exit.started)
    return failed(
      failure("transport_local_resource", "sandbox_failed", { stage: "seed", status: 503, reason: exit.detail }),
      "infrastructure",
    );
  switch (verdict.kind) {
    case "completed":
      return { status: "completed", failure: null, incomplete_cause: null, cause_class: null };
    case "incomplete":
      return { status: "incomplete", failure: null, incomplete_cause: verdict.cause, cause_class: "limit" };
    case "startup_failed":
      return startupFailure(input);
    case "failed":
      return failedTurn(verdict, input);
    default:
      return verdict satisfies never;
  }
}

/** Another attempt would meet the same: the configuration, the binary and the credentials are what they are. */
const TERMINAL_STARTUP = new Set<CauseCode>(["config_invalid", "binary_missing", "mcp_server_auth"]);

/** Codex ended before any turn: no model was called, so this is never the agent's doing. */
function startupFailure({ stderr, stderrTail, errorText, grantedServers }: ClassifyInput): Outcome {
  const { cause_code, server_names } = startupCause(stderr, grantedServers);
  const reason = stderrTail.trim() === "" ? errorText : stderrTail;
  const made = failure("agent_run_error", cause_code, { reason, terminal: TERMINAL_STARTUP.has(cause_code), server_names });
  return failed(made, cause_code.startsWith("mcp_") ? "grant" : "infrastructure");
}

function failedTurn({ failureKind, cause }: Extract<Verdict, { kind: "failed" }>, { facts, errorText }: ClassifyInput): Outcome {
  // Where no answer of the model was seen, whatever went wrong is not the agent's doing.
  const agents = facts.modelAnswered === true;
  // A model that kills its own Codex would do it again; a kill from elsewhere may not come twice.
  const made = failure(failureKind, cause, { reason: errorText, terminal: failureKind === "kill_shaped" && agents });
  return failed(made, failureKind.startsWith("provider_") ? "model_provider" : agents ? "agent" : "infrastructure");
}

export function cancelledOutcome(mark: CancelMark): Outcome {
  const reason = `cancelled by ${mark.by}${mark.reason === "" ? "" : `: ${mark.reason}`}`;
  return {
    status: "cancelled",
    failure: failure("cancelled", "cancelled", { status: 409, terminal: true, reason }),
    incomplete_cause: null,
    cause_class: "cancelled",
  };
}

/** Never a result: the attempt's own record says why it stopped. */
export function handedBackOutcome(kind: "shutdown" | "lock_lost"): Outcome {
  const reason =
    kind === "shutdown" ? "the worker was stopped; the activation was handed back" : "the worker lost its claim on the activation";
  return failed(failure("shutdown", kind, { stage: "cleanup", status: 503, reason }), "infrastructure");
}

/** An outcome of a stage that failed before Codex was launched. */
export function outcomeOfStage(made: Failure): Outcome {
  return failed(made, made.failure_kind === "agent_request_failed" ? "grant" : "infrastructure");
}

function failed(made: Failure, cause_class: CauseClass): Outcome {
  return { status: "failed", failure: made, incomplete_cause: null, cause_class };
}

function failure(
  failure_kind: Failure["failure_kind"],
  cause_code: CauseCode,
  details: { reason: string; terminal?: boolean; status?: number; stage?: Failure["stage"]; server_names?: string[] },
): Failure {
  const { reason, terminal = false, status = 502, stage = "agent", server_names = [] } = details;
  return { failure_kind, cause_code, server_names, stage, failure_reason: reason, terminal, status_code: status };
}
