// SPDX-License-Identifier: Apache-2.0
import { putStderr } from "../artifacts/evidence.ts";
import { openEventWriter } from "../artifacts/event-writer.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { Artifact } from "../contract/result.ts";
import type { CodexCommand } from "../codex/command.ts";
import { Session } from "../codex/session.ts";
import { StderrTail, type StderrEnd } from "../codex/stderr.ts";
import { readStdout, type StdoutRecord } from "../codex/stdout.ts";
import { redactText } from "../redact/index.ts";
import type { MemoryEnd, Sandbox, SandboxExit, SandboxProcess } from "../sandbox/types.ts";
import type { AttemptContext } from "./attempt.ts";
import type { StopReason } from "./ports.ts";
import { quietFor } from "./quiet.ts";
import { within } from "./within.ts";

/** Why we ended Codex; null = it ended by itself. */
export type Stopped = { kind: "wall_clock" } | { kind: "idle" } | { kind: "linger" } | StopReason | null;

/** All that was seen of one Codex from launch to exit. Texts are not yet redacted, artifacts are. */
export interface CodexEnd {
  exit: SandboxExit;
  memory: MemoryEnd;
  stopped: Stopped;
  /** Measured. */
  elapsed_ms: number;
  session: Session;
  stderr: StderrEnd;
  artifacts: Artifact[];
  gaps: ObservationGap[];
}

/** SIGTERM ends Codex in some 30 ms (seen in 0.144.4); one that hangs in a system call gets this long. */
const STOP_GRACE_MS = 5_000;

/** Codex exits within 0.1 s of its turn's end. One that does not, or a process of its that holds the pipes then, is not waited for longer. */
const LINGER_MS = 5_000;

/** What is already in the pipes of a Codex that was told to stop is read in milliseconds; more would hold up whoever asked. */
const DRAIN_MS = 1_000;

/**
 * Launches Codex and follows it to its end: prompt in, events out as they come, the wall clock and the idle limit, and whatever
 * stops it early. Rejects when evidence cannot be written; Codex is ended by then.
 */
export async function runCodex(
  context: AttemptContext,
  sandbox: Sandbox,
  launch: { command: CodexCommand; prompt: string; beginWithinMs: number; signal: AbortSignal },
): Promise<CodexEnd> {
  const { command, prompt, beginWithinMs, signal } = launch;
  const { timeout_seconds, idle_seconds, session_close_timeout_seconds } = context.activation.codex;
  const started = context.clock();
  const child = sandbox.exec(command.argv, { env: command.env, cwd: command.cwd, beginWithinMs });

  const session = new Session(context.capture_key);
  const tail = new StderrTail();
  const stderrFile = putStderr(context.evidence, child.stderr.pipe(tail));
  stderrFile.catch(() => undefined); // awaited below; may fail before that
  const events = openEventWriter(context.evidence);
  writePrompt(child, prompt);

  const watch = watchForStop(child, signal, {
    wallMs: timeout_seconds * 1000,
    idleMs: idle_seconds === undefined ? null : idle_seconds * 1000,
  });
  const quiet = quietFor(LINGER_MS);
  child.stderr.on("data", () => quiet.heard(false));
  let answered = false;
  async function follow(record: StdoutRecord): Promise<void> {
    quiet.heard(true);
    session.apply(record);
    if (session.answered && !answered) context.answered();
    answered = session.answered;
    await events.write(record.at, record.value);
    // After the write: a slow store is not an idle Codex.
    if (session.turnEnded) watch.turnEnded();
    else if (session.turnStarted) watch.active();
    const note = noteOf(record);
    if (note !== null) context.progress({ stage: "running", note: redactText(context.secrets, note), counts: session.counts() });
    quiet.heard(false);
  }
  try {
    const reading = forEachRecord(child, follow);
    reading.catch(() => child.stop({ graceMs: 0 }));
    const exit = await child.exited;
    const elapsed_ms = context.clock() - started;
    const { oom_killed, memory_limit_reached } = sandbox.usage();
    watch.exited();
    quiet.count();
    // A process that Codex left behind may hold the pipes; what it writes is none of Codex's.
    const readToTheEnd = Promise.allSettled([reading, stderrFile]);
    const toldToStop = watch.aborted.then(() => within(DRAIN_MS, readToTheEnd));
    await within(session_close_timeout_seconds * 1000, Promise.race([readToTheEnd, toldToStop, quiet.reached]));
    for (const stream of [child.stdout, child.stderr, tail]) stream.destroy(); // nothing happens to those that have ended
    await reading.catch(ignorePrematureClose);
    const ended = await events.end();
    return {
      exit,
      memory: { oom_killed, memory_limit_reached },
      stopped: watch.stopped(),
      elapsed_ms,
      session,
      stderr: tail.window(),
      artifacts: [ended.artifact, await stderrFile],
      gaps: ended.gaps,
    };
  } finally {
    watch.end();
    quiet.end();
    child.stop({ graceMs: 0 }); // nothing happens when it has ended
  }
}

/** Codex may exit without having read its prompt: that shows in its exit, not in the broken pipe. */
function writePrompt(child: SandboxProcess, prompt: string): void {
  child.stdin.on("error", () => undefined);
  child.stdin.end(prompt);
}

async function forEachRecord(child: SandboxProcess, use: (record: StdoutRecord) => Promise<void>): Promise<void> {
  for await (const record of readStdout(child.stdout)) await use(record);
}

/** What a person watching wants to know of an event; null = nothing. */
function noteOf(record: StdoutRecord): string | null {
  if (record.kind !== "event") return null;
  const { event } = record;
  if (event.type === "turn.started") return "turn started";
  if (event.type !== "item.started" && event.type !== "item.completed") return null;
  const { item } = event;
  if (item.type === "mcp_tool_call" && event.type === "item.started") return `${String(item["tool"])} (${String(item["server"])})`;
  if (item.type === "agent_message") return "message";
  return event.type === "item.started" ? item.type : null;
}

interface Watch {
  stopped: () => Stopped;
  /** The turn goes on: the idle limit counts from here. */
  active: () => void;
  /** Codex has nothing more to do than to exit. */
  turnEnded: () => void;
  /** Codex is gone: no limit can strike any more, but a cancel still counts while its output is read. */
  exited: () => void;
  /** Settles when we are told to stop. */
  aborted: Promise<void>;
  end: () => void;
}

/** Ends Codex at the wall clock, when its turn is silent for too long, when it lingers after it, or when told to; the first reason counts. */
function watchForStop(child: SandboxProcess, signal: AbortSignal, { wallMs, idleMs }: { wallMs: number; idleMs: number | null }): Watch {
  let stopped: Stopped = null;
  let hasExited = false;
  let silence: NodeJS.Timeout | undefined;
  const stop = (why: NonNullable<Stopped>): void => {
    // What had ended by itself is finished work: only a cancel makes another end of it.
    if (!hasExited || why.kind === "cancelled") stopped ??= why;
    child.stop({ graceMs: why.kind === "lock_lost" ? 0 : STOP_GRACE_MS });
  };
  const wall = setTimeout(() => stop({ kind: "wall_clock" }), wallMs);
  const silentFor = (ms: number | null, why: NonNullable<Stopped>): void => {
    clearTimeout(silence);
    if (ms !== null && !hasExited) silence = setTimeout(() => stop(why), ms);
  };
  const endLimits = (): void => {
    hasExited = true;
    clearTimeout(wall);
    clearTimeout(silence);
  };
  let onAbort = (): void => undefined;
  const aborted = new Promise<void>((resolve) => {
    onAbort = () => {
      stop(signal.reason as StopReason);
      resolve();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  return {
    stopped: () => stopped,
    active: () => silentFor(idleMs, { kind: "idle" }),
    turnEnded: () => silentFor(LINGER_MS, { kind: "linger" }),
    exited: endLimits,
    aborted,
    end: () => {
      endLimits();
      signal.removeEventListener("abort", onAbort);
    },
  };
}

function ignorePrematureClose(error: unknown): void {
  if (error instanceof Error && "code" in error && error.code === "ERR_STREAM_PREMATURE_CLOSE") return; // destroyed by us
  throw error;
}
