// SPDX-License-Identifier: Apache-2.0
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { STDERR_TAIL_BYTES } from "../codex/stderr.ts";
import { readThreads } from "../codex/transcript-threads.ts";
import type { Artifact } from "../contract/result.ts";
import { createRedactStream, redactText, type SecretSet } from "../redact/index.ts";
import { createByteWindow } from "./byte-window.ts";
import { findFiles } from "./find-files.ts";
import { openInside, realRoot } from "./open-inside.ts";
import type { ArtifactFacts, ArtifactStore } from "./types.ts";

/** The attempt whose evidence is kept, and what must not show in it. */
export interface EvidenceTarget {
  store: ArtifactStore;
  activation_id: string;
  attempt: number;
  secrets: SecretSet;
}

export const EVIDENCE: ArtifactFacts = { kind: "evidence", source: null, quarantined: false };

const TRANSCRIPT = "transcript.jsonl";
/** All that is kept as evidence, and a transcript of each subagent. What an attempt of a killed worker left of it is worth naming. */
const EVIDENCE_FILES = ["config.toml", "events.jsonl", "stderr.log", TRANSCRIPT];

/** Where the transcript of a subagent is kept. `threadId`: one that {@link openTranscript} found. */
export function subagentTranscript(threadId: string): string {
  return `transcripts/${threadId}.jsonl`;
}

/** The evidence that is in the store of an attempt, measured anew; of a killed worker's in parts. */
export async function evidenceLeft(store: ArtifactStore, activationId: string, attempt: number): Promise<Artifact[]> {
  const find = (path: string): Promise<Artifact | null> => store.find(activationId, attempt, path, EVIDENCE);
  const found = await Promise.all(EVIDENCE_FILES.map(find));
  const left = found.filter((artifact) => artifact !== null);
  if (!left.some(({ path }) => path === TRANSCRIPT)) return left;
  const root = store.open(activationId, attempt, TRANSCRIPT);
  const open = async (threadId: string): Promise<Readable | null> => {
    const artifact = isThreadId(threadId) ? await find(subagentTranscript(threadId)) : null;
    if (artifact !== null) left.push(artifact);
    return artifact === null ? null : store.open(activationId, attempt, artifact.path);
  };
  await readThreads({ root, open }).catch(() => undefined); // then what was found until then is there
  return left;
}

const STDERR_HEAD_BYTES = 65_536;
const TRANSCRIPT_BYTES = 67_108_864;

/** Keeps a text, e.g. config.toml, redacted. */
export function putText({ store, activation_id, attempt, secrets }: EvidenceTarget, path: string, text: string): Promise<Artifact> {
  return store.put(activation_id, attempt, path, Readable.from([redactText(secrets, text)], { objectMode: false }), EVIDENCE);
}

/**
 * Keeps the beginning and the end of Codex's stderr as stderr.log. Call it when Codex starts: it always reads the stream to its
 * end, so that Codex does not stall, and settles then. When the stream breaks off, what came before is kept. Rejects only with the
 * store's error.
 */
export function putStderr(target: EvidenceTarget, stderr: Readable): Promise<Artifact> {
  return putRedacted(target, "stderr.log", untilItBreaks(stderr), { head: STDERR_HEAD_BYTES, tail: STDERR_TAIL_BYTES });
}

/**
 * Keeps Codex's own transcript of one thread as `path`, at most its first 64 MiB; null when there is none, or when
 * `signal` aborts. Rejects only with the store's error. `codexHome` and `threadId`: see {@link openTranscript}.
 */
export async function putTranscript(
  target: EvidenceTarget,
  codexHome: string,
  threadId: string,
  signal: AbortSignal,
  path: string = TRANSCRIPT,
): Promise<Artifact | null> {
  const source = await openTranscript(codexHome, threadId, signal);
  if (source === null) return null;
  try {
    return await putRedacted(target, path, source, { head: TRANSCRIPT_BYTES, tail: 0, structured: true });
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
}

/**
 * The bytes of Codex's own transcript of one thread, as Codex wrote them; null when there is none. They break off with an error
 * when `signal` aborts. Call it before the sandbox is destroyed. The model can write there: a link in the place of the transcript
 * is not followed, and only the file of this very thread is taken (the model may have run a Codex of its own).
 */
export async function openTranscript(
  /** CODEX_HOME as the worker sees it. */
  codexHome: string,
  threadId: string,
  signal: AbortSignal,
  /** Asked with its size; what does not fit is not opened. */
  fits: (bytes: number) => boolean = () => true,
): Promise<Readable | null> {
  const root = await realRoot(codexHome);
  if (root === null || !isThreadId(threadId)) return null;
  const workdir = { inside: root, outside: root };
  const patterns = [`sessions/*/*/*/rollout-*-${threadId}.jsonl`];
  const [path] = await findFiles({ workdir, patterns, maxFiles: 1, signal, skip: () => {} });
  if (path === undefined) return null;
  const opened = await openInside(root, path);
  if ("why" in opened) return null;
  if (fits(opened.bytes)) return opened.file.createReadStream({ signal });
  await opened.file.close();
  return null;
}

function isThreadId(text: string): boolean {
  return /^[0-9A-Za-z-]{1,64}$/.test(text);
}

function putRedacted(
  { store, activation_id, attempt, secrets }: EvidenceTarget,
  path: string,
  source: Readable | AsyncGenerator<Buffer>,
  keep: { head: number; tail: number; structured?: boolean },
): Promise<Artifact> {
  // Redaction comes first: a cut through a secret would leave a part that it cannot know.
  const body = createByteWindow(keep.head, keep.tail);
  pipeline(source, createRedactStream(secrets, { structured: keep.structured ?? false }), body).catch(() => {}); // the store sees the error in `body`
  return store.put(activation_id, attempt, path, body, EVIDENCE);
}

async function* untilItBreaks(stream: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) yield chunk as Buffer;
  } catch {
    // a broken stream ends here
  } finally {
    stream.resume();
  }
}
