// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  cancelledOutcome,
  classify,
  handedBackOutcome,
  outcomeOfStage,
  sessionEnd,
  type ClassifyInput,
  type Outcome,
} from "../../src/activation/classify.ts";
import type { Stopped } from "../../src/activation/run-codex.ts";
import { Session, type SessionFacts } from "../../src/codex/session.ts";
import { verdictOf } from "../../src/codex/verdict.ts";
import type { Failure } from "../../src/contract/failure.ts";
import type { MemoryEnd, SandboxExit } from "../../src/sandbox/types.ts";
import { profileFor } from "../../src/codex/profile.ts";

interface Seen {
  facts?: Partial<SessionFacts>;
  exit?: SandboxExit;
  memory?: MemoryEnd;
  stopped?: Stopped;
  commands?: readonly string[];
  missing?: string[];
  notOffered?: string[];
  stderr?: string;
  stderrTail?: string;
}

/** What a session comes to of which this was seen. */
function outcome(seen: Seen): Outcome {
  const { facts: some = {}, exit = exited(0), stopped = null, commands = [], missing = [], stderr = "" } = seen;
  const { memory = NOT_KILLED } = seen;
  const facts: SessionFacts = { ...new Session("key").facts(), turnStarted: true, ...some };
  const verdict = verdictOf(facts, sessionEnd(exit, stopped), profileFor("0.144.4"));
  const input: ClassifyInput = {
    exit,
    memory,
    stopped,
    facts,
    runningCommands: commands,
    requiredToolsMissing: missing,
    requiredToolsNotOffered: seen.notOffered ?? [],
    refusedTools: { server_names: ["office"], tools: ["calculate"] },
    verdict,
    errorText: "error" in verdict ? verdict.error : "",
    stderr,
    stderrTail: seen.stderrTail ?? stderr,
    grantedServers: ["office"],
    profile: profileFor("0.144.4"),
  };
  return classify(input);
}

/** The same in one line. */
function end(seen: Seen): string {
  const { status, failure, incomplete_cause, cause_class } = outcome(seen);
  const retry = failure === null ? "" : failure.terminal ? " terminal" : " retryable";
  return `${status} ${failure?.cause_code ?? incomplete_cause ?? "-"} ${cause_class ?? "-"}${retry}`;
}

const NOT_KILLED: MemoryEnd = { oom_killed: false, memory_limit_reached: false };
const atOwnLimit: MemoryEnd = { oom_killed: true, memory_limit_reached: true };
const byHost: MemoryEnd = { oom_killed: true, memory_limit_reached: false };
const exited = (code: number): SandboxExit => ({ started: true, code, signal: null });
const killed: SandboxExit = { started: true, code: null, signal: "SIGKILL" };
const stoppedByUs: SandboxExit = { started: true, code: null, signal: "SIGTERM" };
const answered: Partial<SessionFacts> = { modelAnswered: true };
const failedTurn = (text: string, more: Partial<SessionFacts> = {}): Partial<SessionFacts> => ({
  turnFailures: [text],
  errors: [text],
  ...more,
});

describe("whose doing an end is, from what was measured", () => {
  it.each<[string, Seen, string]>([
    ["a good end", { facts: { turnCompleted: true, ...answered } }, "completed - -"],
    [
      "a turn that broke because the host's disk was full [fault B14]",
      { facts: failedTurn("failed to write rollout: No space left on device (os error 28)", answered), exit: exited(1) },
      "failed disk_full infrastructure retryable",
    ],
    [
      "an exit with a full disk in stderr [fault B14]",
      { facts: answered, exit: exited(1), stderr: "Error: Disk quota exceeded (os error 122)" },
      "failed disk_full infrastructure retryable",
    ],
    [
      "no turn at all on a full disk [fault B14]",
      { facts: { turnStarted: false, modelAnswered: false }, exit: exited(1), stderr: "Error: No space left on device (os error 28)" },
      "failed disk_full infrastructure retryable",
    ],
    [
      "a model server that says that its own disk is full [fault B14]",
      { facts: failedTurn("unexpected status 500: [Errno 28] No space left on device", { modelAnswered: null }), exit: exited(1) },
      "failed turn_failed model_provider retryable",
    ],
    ["a good end without the required tool", { facts: { turnCompleted: true, ...answered }, missing: ["finish"] }, "completed - agent"],
    [
      "the wall clock after answers",
      { facts: answered, exit: stoppedByUs, stopped: { kind: "wall_clock" } },
      "incomplete wall_clock limit",
    ],
    ["the idle limit after answers", { facts: answered, exit: stoppedByUs, stopped: { kind: "idle" } }, "incomplete idle limit"],
    [
      "the wall clock, the model never heard",
      { facts: { modelAnswered: false }, exit: stoppedByUs, stopped: { kind: "wall_clock" } },
      "incomplete wall_clock model_provider",
    ],
    [
      "the wall clock before any event",
      { facts: { turnStarted: false, modelAnswered: false }, exit: stoppedByUs, stopped: { kind: "wall_clock" } },
      "failed unknown infrastructure retryable",
    ],
    [
      "no event, exit 1",
      { facts: { turnStarted: false, modelAnswered: false }, exit: exited(1) },
      "failed unknown infrastructure retryable",
    ],
    [
      "the limit on the model's output, although no answer was seen",
      { facts: { errors: ["Incomplete response returned, reason: max_output_tokens"], modelAnswered: null }, exit: exited(1) },
      "incomplete max_output_tokens limit",
    ],
    [
      "a kill while a command ran",
      { facts: answered, exit: killed, commands: ["pkill -f codex"] },
      "failed killed_by_signal agent terminal",
    ],
    ["a kill while the model was thinking", { facts: answered, exit: killed }, "failed killed_by_signal infrastructure retryable"],
    ["a kill before any answer", { facts: { modelAnswered: null }, exit: killed }, "failed killed_by_signal infrastructure retryable"],
    ["a kill at the sandbox's memory limit", { facts: answered, exit: killed, memory: atOwnLimit }, "failed out_of_memory agent terminal"],
    [
      "a kill at the sandbox's memory limit before any answer",
      { facts: { modelAnswered: false }, exit: killed, memory: atOwnLimit },
      "failed out_of_memory infrastructure terminal",
    ],
    [
      "a kill at the sandbox's memory limit before any turn",
      { facts: { turnStarted: false, modelAnswered: false }, exit: killed, memory: atOwnLimit },
      "failed out_of_memory infrastructure terminal",
    ],
    [
      "a kill because the host ran short of memory, while a command ran",
      { facts: answered, exit: killed, memory: byHost, commands: ["pkill -f codex"] },
      "failed out_of_memory infrastructure retryable",
    ],
    [
      "a kill at the wall clock, a command having been killed for memory",
      { facts: answered, exit: killed, memory: atOwnLimit, stopped: { kind: "wall_clock" } },
      "incomplete wall_clock limit",
    ],
    [
      "a good end, a command having been killed for memory",
      { facts: { turnCompleted: true, ...answered }, memory: atOwnLimit },
      "completed - -",
    ],
    [
      "a bad end, a command having been killed for memory",
      { facts: { modelAnswered: null }, exit: exited(1), memory: atOwnLimit },
      "failed exit_code infrastructure retryable",
    ],
    [
      "a turn that failed before any answer",
      { facts: failedTurn('{"error":{"message":"no such thing"}}', { modelAnswered: null }), exit: exited(1) },
      "failed turn_failed model_provider retryable",
    ],
    [
      "a turn that failed for a full context",
      { facts: failedTurn("Codex ran out of room in the model's context window.", answered), exit: exited(1) },
      "incomplete context_overflow limit",
    ],
    [
      "a model server that is busy",
      { facts: failedTurn("exceeded retry limit, last status: 429 Too Many Requests", answered), exit: exited(1) },
      "failed rate_limited model_provider retryable",
    ],
    [
      "a missing key",
      { facts: failedTurn("Missing environment variable: `OPENAI_API_KEY`.", { modelAnswered: false }), exit: exited(1) },
      "failed model_key_missing infrastructure retryable",
    ],
    [
      "an exit without a word before any answer",
      { facts: { modelAnswered: null }, exit: exited(1) },
      "failed exit_code infrastructure retryable",
    ],
    [
      "a sandbox that did not begin",
      { exit: { started: false, detail: "no namespaces" } },
      "failed sandbox_failed infrastructure retryable",
    ],
    [
      "a cancel",
      { stopped: { kind: "cancelled", mark: { by: "x", at: "2027-01-15T08:00:00.000Z", reason: "" } }, exit: stoppedByUs },
      "cancelled cancelled cancelled terminal",
    ],
  ])("%s", (_name, seen, expected) => {
    expect(end(seen)).toBe(expected);
  });
});

const startup = (stderr: string, stderrTail = stderr): Outcome =>
  outcome({ facts: { turnStarted: false, modelAnswered: false }, exit: exited(1), stderr, stderrTail });
const serverFailed = (reason: string): string => `Error: thread/start: required MCP servers failed to initialize: office: ${reason}`;
const HANDSHAKE = "handshaking with MCP server failed: ";

describe("a Codex that was killed while commands ran", () => {
  const reasonOf = (commands: string[], errors: string[] = []): string =>
    outcome({ facts: { ...answered, errors }, exit: killed, commands }).failure?.failure_reason ?? "";

  it("is told with them, whole when they are short [E11]", () => {
    expect(reasonOf(["pkill -9 -f codex", ""])).toBe("Codex was killed by SIGKILL while this ran: pkill -9 -f codex; a command");
    expect(reasonOf([])).toBe("Codex was killed by SIGKILL");
  });

  it("is told within the bounds of a reason, with the beginnings of the commands", () => {
    const reason = reasonOf(
      Array.from({ length: 9 }, (_, n) => `kill ${n} ${"x".repeat(5_000)}`),
      ["e".repeat(2_000)],
    );
    expect(reason.length).toBe(2_000);
    expect(reason).toMatch(/ while this ran: kill 0 x{293}\.\.\.; kill 1 x+\.\.\.; kill 2 x+\.\.\., and 6 more$/);
  });
});

describe("a session that ended before any turn", () => {
  it.each<[string, string, string]>([
    ["a server that refuses the credentials", serverFailed(`${HANDSHAKE}Auth required`), "mcp_server_auth grant terminal office"],
    ["a server that is down", serverFailed(`${HANDSHAKE}connection closed: initialize`), "mcp_server_unreachable grant retryable office"],
    [
      "a server's settings that Codex cannot use",
      serverFailed("Invalid MCP server name 'office'"),
      "config_invalid infrastructure terminal office",
    ],
    ["a configuration that cannot be read", "Error loading config.toml: bad", "config_invalid infrastructure terminal "],
    ["anything else", "Segmentation fault", "unknown infrastructure retryable "],
  ])("is told by its cause, and is retried only where that may help: %s [R20 R21]", (_name, stderr, expected) => {
    const { failure, cause_class } = startup(stderr);
    expect(failure).toMatchObject({ failure_kind: "agent_run_error", stage: "agent", status_code: 502, failure_reason: stderr });
    const retry = failure?.terminal === true ? "terminal" : "retryable";
    expect(`${failure?.cause_code} ${cause_class} ${retry} ${failure?.server_names.join()}`).toBe(expected);
  });

  it("is this host's failure when Codex was removed from it, to be tried again [E21]", () => {
    const stderr = "bwrap: execvp codex: No such file or directory";
    expect(startup(stderr)).toMatchObject({
      cause_class: "infrastructure",
      failure: { failure_kind: "transport_local_resource", cause_code: "sandbox_failed", terminal: false, status_code: 503, stage: "seed" },
    });
  });

  it("is shown by the end of stderr, or by how Codex exited when it said nothing", () => {
    expect(startup("all of it", "its end").failure?.failure_reason).toBe("its end");
    for (const silent of ["", " \n"])
      expect(startup(silent).failure?.failure_reason).toBe("Codex exited with code 1 before a turn started");
  });
});

describe("what a failure says", () => {
  const base: Failure = {
    failure_kind: "agent_run_error",
    cause_code: "unknown",
    server_names: [],
    stage: "agent",
    failure_reason: "",
    terminal: false,
    status_code: 502,
  };

  it("a sandbox that did not begin failed before the agent, for the reason it gave", () => {
    expect(outcome({ exit: { started: false, detail: "no namespaces" } }).failure).toEqual({
      ...base,
      failure_kind: "transport_local_resource",
      cause_code: "sandbox_failed",
      stage: "seed",
      status_code: 503,
      failure_reason: "no namespaces",
    });
  });

  it.each<[MemoryEnd, string, boolean]>([
    [atOwnLimit, "Codex was killed by SIGKILL: the sandbox reached its memory limit", true],
    [byHost, "Codex was killed by SIGKILL: the worker's host ran short of memory", false],
  ])("a Codex that was killed for memory says whose memory it was: %j", (memory, failure_reason, terminal) => {
    const failure_kind = "provider_oom_killed";
    expect(outcome({ facts: answered, exit: killed, memory }).failure).toEqual({
      ...base,
      failure_kind,
      cause_code: "out_of_memory",
      failure_reason,
      terminal,
    });
  });

  it("a failed turn is shown by Codex's own words, and names no server", () => {
    expect(outcome({ facts: failedTurn("no such thing", answered), exit: exited(1) }).failure).toEqual({
      ...base,
      cause_code: "turn_failed",
      failure_reason: "no such thing",
    });
  });

  it("a cancel says who and why, as far as they told", () => {
    const mark = { by: "ann", at: "2027-01-15T08:00:00.000Z", reason: "" };
    const cancelled = { ...base, failure_kind: "cancelled", cause_code: "cancelled", terminal: true, status_code: 409 };
    expect(cancelledOutcome(mark).failure).toEqual({ ...cancelled, failure_reason: "cancelled by ann" });
    expect(cancelledOutcome({ ...mark, reason: "no longer wanted" }).failure).toEqual({
      ...cancelled,
      failure_reason: "cancelled by ann: no longer wanted",
    });
  });

  it.each<["shutdown" | "lock_lost", string]>([
    ["shutdown", "the worker was stopped; the activation was handed back"],
    ["lock_lost", "the worker lost its claim on the activation"],
  ])("an attempt that was handed back says why, whatever Codex had come to: %s", (kind, reason) => {
    const handedBack = handedBackOutcome(kind);
    expect(handedBack).toEqual({
      status: "failed",
      failure: { ...base, failure_kind: "shutdown", cause_code: kind, stage: "cleanup", status_code: 503, failure_reason: reason },
      incomplete_cause: null,
      cause_class: "infrastructure",
    });
    expect(outcome({ facts: { turnCompleted: true, ...answered }, stopped: { kind } })).toEqual(handedBack);
  });

  it.each<[Partial<Failure>, string]>([
    [{ failure_kind: "agent_request_failed", cause_code: "codex_version_mismatch" }, "grant"],
    [{ failure_kind: "agent_run_error", cause_code: "mcp_server_auth" }, "grant"],
    [{ failure_kind: "agent_run_error", cause_code: "config_invalid" }, "infrastructure"],
    [{ failure_kind: "transport_local_resource", cause_code: "sandbox_failed" }, "infrastructure"],
  ])("what failed before the launch is the grant's doing or ours, and said as it was: %j", (some, cause_class) => {
    const made = { ...base, ...some };
    expect(outcomeOfStage(made)).toEqual({ status: "failed", failure: made, incomplete_cause: null, cause_class });
  });
});

describe("the end of a process, as the verdict wants it", () => {
  it.each<[SandboxExit, Stopped, object]>([
    [exited(3), null, { code: 3, signal: null, timedOut: false, idle: false }],
    [killed, { kind: "wall_clock" }, { code: null, signal: "SIGKILL", timedOut: true, idle: false }],
    [stoppedByUs, { kind: "idle" }, { code: null, signal: "SIGTERM", timedOut: true, idle: true }],
    [{ started: false, detail: "x" }, null, { code: null, signal: null, timedOut: false, idle: false }],
  ])("%j, stopped: %j", (exit, stopped, expected) => {
    expect(sessionEnd(exit, stopped)).toEqual(expected);
  });
});
