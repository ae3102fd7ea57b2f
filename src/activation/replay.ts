// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Readable } from "node:stream";
import { subagentTranscript } from "../artifacts/evidence.ts";
import { profileToRead, type TranscriptHabits } from "../codex/profile.ts";
import { Session, type SessionFacts } from "../codex/session.ts";
import { storedStderr, type StderrEnd } from "../codex/stderr.ts";
import { readStoredEvents } from "../codex/stdout.ts";
import { readThreads, type SessionTranscripts } from "../codex/transcript-threads.ts";
import type { GapCode, ObservationBundle, ObservationGap } from "../contract/observation.ts";
import { attemptSchema, type Attempt, type Evidence } from "../contract/result.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { emptySecretSet, type SecretSet } from "../redact/index.ts";
import type { SandboxExit } from "../sandbox/types.ts";
import type { Outcome } from "./classify.ts";
import { concludeSession } from "./conclude.ts";
import { observe } from "./observe.ts";
import { evidenceOf } from "./response.ts";

/** What the kept evidence of one attempt says when it is read again. */
export interface Replay {
  attempt: number;
  capture_key: string;
  /** What is recorded, and what was concluded now. */
  recorded: Outcome;
  replayed: Outcome;
  /** Empty: reading, redaction and classification come to what is recorded. */
  differences: Difference[];
}

interface Difference {
  /** e.g. `observations.records[2].status` */
  path: string;
  recorded: unknown;
  replayed: unknown;
}

/** Gaps of other stages than the reading of the session: they are not in its evidence. */
const OF_OTHER_STAGES = new Set<GapCode>([
  "mcp_server_skipped",
  "tool_grant_skipped",
  "mcp_server_unavailable",
  "mcp_server_state_unknown",
  "mcp_tool_names_altered",
  "artifact_skipped",
  "artifact_quarantined",
  "agent_artifact_unavailable",
  "codex_version_unprofiled",
]);
const MOST_DIFFERENCES = 50;

/**
 * Reads the evidence of an attempt (attempt.json, events.jsonl, stderr.log, transcript.jsonl, transcripts/ in `directory`) as if its Codex had
 * just ended, and compares. null when its Codex was never launched. Evidence is redacted already; `secrets` are for evidence that
 * is not. Throws RollcallError "replay_impossible" when attempt.json is missing or not one of this version.
 */
export async function replayAttempt(directory: string, secrets: SecretSet = emptySecretSet): Promise<Replay | null> {
  const attempt = await readAttempt(join(directory, "attempt.json"));
  const { evidence, capture_key, failure } = attempt;
  if (evidence === null) return null;
  const { launch_error, stopped, required_tools: requiredTools, elapsed_ms } = evidence;
  const notOffered = new Set(attempt.observations.gaps.flatMap(toolNotOffered));
  const memory = { oom_killed: evidence.oom_killed, memory_limit_reached: evidence.memory_limit_reached };
  const profile = profileToRead(attempt.worker.codex_version);
  const facts = (await readEvents(join(directory, "events.jsonl"), capture_key)).facts();
  const concluded = concludeSession(secrets, {
    invocation_id: capture_key,
    facts,
    transcripts: await readKeptTranscripts(directory, facts, profile.transcript),
    stderr: await readStderr(join(directory, "stderr.log")),
    exit: launch_error === null ? recordedExit(evidence) : { started: false, detail: launch_error },
    memory,
    stopped,
    requiredTools,
    profile,
    grantedServers: attempt.grants.map(({ name }) => name),
    // What the servers offered is not in the evidence; what was found out of it then stands.
    toolsNotOffered: (missing) => missing.filter((tool) => notOffered.has(tool)),
    refusedTools: () => ({ server_names: failure?.server_names ?? [], tools: [] }),
  });
  const observed = { ...concluded, invocation_id: capture_key, requiredTools, elapsed_ms };
  const observations = observe({ ...observed, provider: "", usage: { wall_ms: 0, cpu_ms: null, peak_memory_bytes: null, ...memory } });
  const { status, incomplete_cause, cause_class } = attempt;
  const recorded: Outcome = { status, failure, incomplete_cause, cause_class };
  return {
    attempt: attempt.attempt,
    capture_key,
    recorded,
    replayed: concluded.outcome,
    differences: differencesOf(
      { ...recorded, evidence, usage: attempt.usage, observations: ofTheSession(attempt.observations) },
      {
        ...concluded.outcome,
        evidence: evidenceOf(observed, evidence.cleanup_error),
        usage: concluded.facts.usage,
        observations: ofTheSession(observations),
      },
    ).slice(0, MOST_DIFFERENCES),
  };
}

function recordedExit({ exit_code, signal, killed_from_outside }: Evidence): SandboxExit {
  const exit = { started: true, code: exit_code, signal: signal as NodeJS.Signals | null } as const;
  return killed_from_outside === true ? { ...exit, outside: true } : exit;
}

function toolNotOffered({ code, detail }: ObservationGap): string[] {
  if (code !== "required_tool_not_offered" || detail === undefined) return [];
  return [(JSON.parse(detail) as { tool: string }).tool];
}

async function readAttempt(path: string): Promise<Attempt> {
  try {
    return attemptSchema.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    const why = hasErrno(error, "ENOENT") ? "it is not there" : `it is no attempt of this version (${messageOf(error).slice(0, 300)})`;
    throw new RollcallError("replay_impossible", `cannot replay ${path}: ${why}. Name the directory of an attempt that has ended`, {
      cause: error,
    });
  }
}

/** An attempt may have left nothing of a kind; then there was nothing. */
async function orNothing<T>(read: () => Promise<T>, nothing: T): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return nothing;
    throw error;
  }
}

function readEvents(path: string, invocationId: string): Promise<Session> {
  const session = new Session(invocationId);
  return orNothing(async () => {
    for await (const record of readStoredEvents(createReadStream(path))) session.apply(record);
    return session;
  }, session);
}

function readKeptTranscripts(
  directory: string,
  { threadId, spawnedThreads }: SessionFacts,
  habits: TranscriptHabits,
): Promise<SessionTranscripts | null> {
  const open = (id: string): Promise<Readable | null> => {
    const file = createReadStream(join(directory, subagentTranscript(basename(id))));
    return orNothing<Readable | null>(() => once(file, "open").then(() => file), null);
  };
  return orNothing<SessionTranscripts | null>(() => {
    const root = createReadStream(join(directory, "transcript.jsonl"));
    return readThreads({ root, rootId: threadId, told: spawnedThreads, habits, open });
  }, null);
}

function readStderr(path: string): Promise<Pick<StderrEnd, "text" | "startsMidStream">> {
  return orNothing(async () => storedStderr(await readFile(path)), { text: "", startsMidStream: false });
}

/** What the session's own evidence decides. The sandbox measured itself. */
function ofTheSession({ records, gaps }: ObservationBundle): Pick<ObservationBundle, "records" | "gaps"> {
  return { records: records.filter(({ kind }) => kind !== "sandbox"), gaps: gaps.filter(({ code }) => !OF_OTHER_STAGES.has(code)) };
}

function differencesOf(recorded: unknown, replayed: unknown, path = ""): Difference[] {
  if (!isTree(recorded) || !isTree(replayed) || Array.isArray(recorded) !== Array.isArray(replayed)) {
    return recorded === replayed ? [] : [{ path, recorded, replayed }];
  }
  const keys = new Set([...Object.keys(recorded), ...Object.keys(replayed)]);
  return [...keys].flatMap((key) => {
    const inner = Array.isArray(recorded) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    return differencesOf(recorded[key], replayed[key], inner);
  });
}

function isTree(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object";
}
