// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile } from "../codex/profile.ts";
import { startupCause } from "../codex/startup.ts";
import type { SessionEnd, Verdict } from "../codex/verdict.ts";
import type { SessionFacts } from "../codex/session.ts";
import { MAX_REASON_CHARACTERS, type CauseCode, type Failure } from "../contract/failure.ts";
import type { CauseClass, IncompleteCause, Status } from "../contract/result.ts";
import { isEmptyAnswer, refusedCalls } from "./environment-gaps.ts";
import { refusedNote, type RefusedTools } from "./refused-tool.ts";
import { saysDiskFull } from "../host/disk-full.ts";
import type { MemoryEnd, SandboxExit } from "../sandbox/types.ts";
import type { CancelMark } from "./ports.ts";
import type { Stopped } from "./run-codex.ts";

/** How an attempt ended, in the words of the result. */
export interface Outcome {
  status: Status;
  failure: Failure | null;
  incomplete_cause: IncompleteCause | null;
  cause_class: CauseClass | null;
}

/** What classification looks at. All texts but `stderr` are redacted and bounded already. */
export interface ClassifyInput {
  exit: SandboxExit;
  memory: MemoryEnd;
  stopped: Stopped;
  facts: SessionFacts;
  /** Of the tools that the activation requires, those that no call reached. */
  requiredToolsMissing: readonly string[];
  /** Of those, the ones that no granted server offered, where that is known. */
  requiredToolsNotOffered: readonly string[];
  /** Granted tools that the model server did not take. */
  refusedTools: RefusedTools;
  /** Commands of the model that ran at the end, as far as anybody saw; "" for one whose text is not known. */
  runningCommands: readonly string[];
  verdict: Verdict;
  /** The verdict's error text, shown in the failure. */
  errorText: string;
  /**
   * All of stderr that was kept, as it came: what Codex says of a server may lie before a long body it quotes, and a header's
   * value "1" would take its words apart. Looked at, never shown.
   */
  stderr: string;
  /** Its end, at most 2,000 characters, for people. */
  stderrTail: string;
  grantedServers: readonly string[];
  profile: CodexProfile;
}

/** The end of a sandboxed process as the verdict wants it. */
export function sessionEnd(exit: SandboxExit, stopped: Stopped): SessionEnd {
  const idle = stopped?.kind === "idle";
  const ended = { timedOut: idle || stopped?.kind === "wall_clock", idle };
  if (!exit.started) return { code: null, signal: null, ...ended };
  // It had said how its turn ended; how it then died was our doing.
  return stopped?.kind === "linger" ? { code: 0, signal: null, ...ended } : { code: exit.code, signal: exit.signal, ...ended };
}

/** Decides what the attempt's end is called and whose it is. Pure. The order is the order of certainty. */
export function classify(input: ClassifyInput): Outcome {
  const { exit, stopped, verdict, facts } = input;
  if (stopped?.kind === "cancelled") return cancelledOutcome(stopped.mark);
  if (stopped?.kind === "shutdown" || stopped?.kind === "lock_lost") return handedBackOutcome(stopped.kind);
  if (!exit.started) return sandboxFailed(exit.detail);
  switch (verdict.kind) {
    case "completed":
      // Still completed, and gradable, whosever doing it is that nothing was handed in.
      return { status: "completed", failure: null, incomplete_cause: null, cause_class: classOfCompleted(input) };
    case "incomplete":
      // Gradable by contract, whoever was slow; but a model that was never heard did not run into the agent's limit.
      return {
        status: "incomplete",
        failure: null,
        incomplete_cause: verdict.cause,
        cause_class: facts.modelAnswered === true || isOfModel(verdict.cause) ? "limit" : "model_provider",
      };
    case "startup_failed":
      return codexOutOfMemory(input) ? outOfMemory(input) : startupFailure(input);
    case "failed":
      return verdict.failureKind === "kill_shaped" && codexOutOfMemory(input) ? outOfMemory(input) : failedTurn(verdict, input);
    default:
      return verdict satisfies never;
  }
}

/** A limit that the model server itself tells of. */
function isOfModel(cause: IncompleteCause): boolean {
  return cause === "max_output_tokens" || cause === "context_overflow";
}

/** A required tool that nobody offered, or that was called and refused, is not what the agent left undone. */
function classOfCompleted(input: ClassifyInput): CauseClass | null {
  const { facts, requiredToolsMissing: missing, requiredToolsNotOffered } = input;
  if (isEmptyAnswer(facts)) return "model_provider";
  if (missing.length === 0) return null;
  return requiredToolsNotOffered.length > 0 || refusedCalls(facts, missing).length > 0 ? "grant" : "agent";
}

/** Another attempt would meet the same: the configuration, the binary and the credentials are what they are. */
const TERMINAL_STARTUP = new Set<CauseCode>(["config_invalid", "mcp_server_auth"]);

/** What is shown of the commands that ran when Codex was killed. */
const MAX_COMMANDS = 3;
const MAX_COMMAND_CHARACTERS = 300;

/** Codex ended before any turn: no model was called, so this is never the agent's doing. */
function startupFailure({ stderr, stderrTail, errorText, grantedServers, profile }: ClassifyInput): Outcome {
  const { cause_code, servers } = startupCause(stderr, grantedServers, profile);
  const server_names = servers.map(({ name }) => name);
  const reason = stderrTail.trim() === "" ? errorText : stderrTail;
  if (saysDiskFull(reason)) return failed(failure("transport_local_resource", "disk_full", { status: 503, reason }), "infrastructure");
  // The worker looked at it when it started: somebody took it away since, on this host.
  if (cause_code === "binary_missing") return sandboxFailed(reason);
  const made = failure("agent_run_error", cause_code, { reason, terminal: TERMINAL_STARTUP.has(cause_code), server_names });
  return failed(made, cause_code.startsWith("mcp_") ? "grant" : "infrastructure");
}

function diskFull({ errorText, stderrTail }: ClassifyInput): Outcome {
  const reason = saysDiskFull(errorText) ? errorText : stderrTail;
  return failed(failure("transport_local_resource", "disk_full", { status: 503, reason }), "infrastructure");
}

function sandboxFailed(reason: string): Outcome {
  return failed(failure("transport_local_resource", "sandbox_failed", { stage: "seed", status: 503, reason }), "infrastructure");
}

/** A child's death alone leaves Codex going: that is no failure, and the sandbox's record tells it. */
function codexOutOfMemory({ exit, memory, stopped }: ClassifyInput): boolean {
  return stopped === null && exit.started && exit.signal === "SIGKILL" && memory.oom_killed === true;
}

/**
 * The sandbox's own limit would be reached again, so it is final; and where the model was heard, what its session took was the
 * agent's doing. A host without memory may kill anybody.
 */
function outOfMemory({ facts, memory, errorText }: ClassifyInput): Outcome {
  const ownLimit = memory.memory_limit_reached === true;
  const why = ownLimit ? "the sandbox reached its memory limit" : "the worker's host ran short of memory";
  return failed(
    failure("provider_oom_killed", "out_of_memory", { reason: `${errorText}: ${why}`, terminal: ownLimit }),
    ownLimit && facts.modelAnswered === true ? "agent" : "infrastructure",
  );
}

function failedTurn(verdict: Extract<Verdict, { kind: "failed" }>, input: ClassifyInput): Outcome {
  const isFull = verdict.failureKind === "agent_run_error" && (saysDiskFull(input.errorText) || saysDiskFull(input.stderrTail));
  // Whoever filled it: a neighbour on the same host, as like as not.
  if (isFull) return diskFull(input);
  const cause_class = classOfFailedTurn(verdict, input);
  // A model that kills its own Codex would do it again; a kill from elsewhere may not come twice.
  const terminal = verdict.terminal === true || (verdict.failureKind === "kill_shaped" && cause_class === "agent");
  const during = verdict.cause === "killed_by_signal" || verdict.cause === "exit_code" ? whileRunning(input.runningCommands) : "";
  const refused = verdict.cause === "model_tool_refused" ? input.refusedTools : { server_names: [], tools: [] };
  const remedy = verdict.cause === "model_key_refused" ? KEY_REMEDY : "";
  const reason = `${input.errorText}${during}${refusedNote(refused)}${remedy}`.slice(-MAX_REASON_CHARACTERS);
  return failed(failure(verdict.failureKind, verdict.cause, { reason, terminal, server_names: refused.server_names }), cause_class);
}

const KEY_REMEDY =
  " (the model server refuses the key: correct the variable that model.api_key_env names where the worker starts, or the activation's own model.api_key)";

/** Codex's own crash: Rust aborts on a panic it cannot unwind; nobody sends these to end a process. */
const CRASHES = new Set(["SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"]);
/** Of a Rust program that panicked. */
const PANIC = 101;

/** " while this ran: ...": most likely the command that killed Codex; the whole one is in the conversation. */
function whileRunning(commands: readonly string[]): string {
  if (commands.length === 0) return "";
  const shown = commands.slice(0, MAX_COMMANDS).map((command) => (command === "" ? "a command" : clipped(command)));
  const more = commands.length > MAX_COMMANDS ? `, and ${commands.length - MAX_COMMANDS} more` : "";
  return ` while this ran: ${shown.join("; ")}${more}`;
}

function clipped(command: string): string {
  return command.length <= MAX_COMMAND_CHARACTERS ? command : `${command.slice(0, MAX_COMMAND_CHARACTERS)}...`;
}

/** Where no answer of the model was seen, whatever went wrong is not the agent's doing. */
function classOfFailedTurn(
  { failureKind, cause }: Extract<Verdict, { kind: "failed" }>,
  { exit, facts, runningCommands }: ClassifyInput,
): CauseClass {
  if (failureKind.startsWith("provider_")) return "model_provider";
  if (cause === "model_tool_refused") return "grant";
  if (exit.started && (exit.outside === true || CRASHES.has(exit.signal ?? ""))) return "infrastructure";
  // A Codex that panicked, or left without a word on its turn, broke by itself.
  if (cause === "exit_code" && exit.started && (exit.code === PANIC || exit.code === 0)) return "infrastructure";
  const answered = facts.modelAnswered === true;
  // Before any answer a turn can fail only by what the model server said, or did not say.
  if (cause === "turn_failed" && !answered) return "model_provider";
  // Only a command of the model's own can have killed Codex for the agent.
  if (failureKind === "kill_shaped") return answered && runningCommands.length > 0 ? "agent" : "infrastructure";
  return answered ? "agent" : "infrastructure";
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
  return failed(made, made.failure_kind === "agent_request_failed" || made.cause_code.startsWith("mcp_") ? "grant" : "infrastructure");
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
