// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { sessionGaps } from "../../src/codex/gaps.ts";
import { Session, type SessionFacts } from "../../src/codex/session.ts";
import { readStdout } from "../../src/codex/stdout.ts";
import { joinTranscripts, type JoinedSession } from "../../src/codex/transcript-join.ts";
import { readThreads, type SessionTranscripts, type ThreadsOptions } from "../../src/codex/transcript-threads.ts";
import { verdictOf, type Verdict } from "../../src/codex/verdict.ts";
import type { ObservationGap } from "../../src/contract/observation.ts";
import { profileFor } from "../../src/codex/profile.ts";

export const VERSIONS = ["0.144.4", "0.171.0"] as const;
export type Version = (typeof VERSIONS)[number];

export interface Recording {
  exit_code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

/** All recordings of one group of one version, by case. */
export function recordings(version: Version, group: string): Record<string, Recording> {
  const path = new URL(`../fixtures/codex/${version}/${group}.json`, import.meta.url);
  const cases = JSON.parse(readFileSync(path, "utf8")) as Record<
    string,
    Omit<Recording, "stdout" | "stderr"> & Record<"stdout" | "stderr", string[]>
  >;
  return Object.fromEntries(
    Object.entries(cases).map(([name, one]) => [name, { ...one, stdout: one.stdout.join("\n"), stderr: one.stderr.join("\n") }]),
  );
}

export async function* once(...chunks: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

/** The facts of a stdout; the n-th record is received at second n. */
export async function factsOf(stdout: string): Promise<SessionFacts> {
  const session = new Session("key");
  let second = 0;
  for await (const record of readStdout(once(stdout), { now: () => ++second })) session.apply(record);
  return session.facts();
}

export async function played(recording: Recording): Promise<{ facts: SessionFacts; verdict: Verdict; gaps: ObservationGap[] }> {
  const facts = await factsOf(recording.stdout);
  const end = { code: recording.exit_code, signal: recording.signal, timedOut: false };
  const verdict = verdictOf(facts, end, profileFor("0.144.4"));
  return { facts, verdict, gaps: sessionGaps(facts, verdict, end, "key") };
}

/** A conversation in one line an item, to be compared with what was written by hand. */
export function told(facts: SessionFacts): string[] {
  return facts.items.map((item) => {
    const ending = "status" in item && item.status !== "completed" ? ` (${item.status})` : "";
    switch (item.type) {
      case "message":
        return `message ${item.content[0]?.text}${ending}`;
      case "reasoning":
        return `reasoning ${item.summary[0]?.text}`;
      case "function_call":
        return `call ${item.name} ${item.arguments}${ending}`;
      case "function_call_output":
        return `output ${JSON.stringify(item.output)}${ending}`;
      default:
        return item satisfies never;
    }
  });
}

/** A recording with what Codex wrote to its transcript meanwhile. */
export interface TranscriptRecording extends Recording {
  transcript: string;
}

export function transcripts(version: Version): Record<string, TranscriptRecording> {
  const all = recordings(version, "transcript") as Record<string, Recording & { transcript: string[] | string }>;
  return Object.fromEntries(
    Object.entries(all).map(([name, one]) => [
      name,
      { ...one, transcript: (one.transcript as string[]).map((line) => `${line}\n`).join("") },
    ]),
  );
}

/** The events joined with one transcript, which is the root's; null = there is none. */
export async function joinedWith(version: Version, events: SessionFacts, transcript: string | null): Promise<JoinedSession> {
  const habits = profileFor(version).transcript;
  const open = async (): Promise<null> => null;
  const read = transcript === null ? null : await readThreads({ root: once(transcript), rootId: events.threadId, habits, open });
  return joinTranscripts(events, read, "key", habits);
}

/** A recorded session with the transcripts of all its threads, and how many requests its model server got. */
export interface ThreadsRecording extends Recording {
  model_posts: number;
  transcripts: Record<string, string>;
}

export function threadsRecordings(version: Version): Record<string, ThreadsRecording> {
  const all = recordings(version, "threads") as Record<string, Recording & { model_posts: number; transcripts: Record<string, string[]> }>;
  const whole = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");
  return Object.fromEntries(
    Object.entries(all).map(([name, one]) => [
      name,
      { ...one, transcripts: Object.fromEntries(Object.entries(one.transcripts).map(([id, lines]) => [id, whole(lines)])) },
    ]),
  );
}

/** All transcripts of a session as they are read from a directory that holds them. */
export async function transcriptsOf(
  version: Version,
  { stdout, transcripts: files }: Pick<ThreadsRecording, "stdout" | "transcripts">,
  more: Partial<ThreadsOptions> = {},
): Promise<SessionTranscripts> {
  const { threadId, spawnedThreads: told } = await factsOf(stdout);
  const open = async (id: string): Promise<AsyncIterable<Uint8Array> | null> => (files[id] === undefined ? null : once(files[id]));
  const habits = profileFor(version).transcript;
  return readThreads({ root: once(files[threadId ?? ""] ?? ""), rootId: threadId, told, habits, open, ...more });
}
