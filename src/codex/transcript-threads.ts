// SPDX-License-Identifier: Apache-2.0
import type { TranscriptHabits } from "./profile.ts";
import { readTranscript, TranscriptMemory, type ReadingOptions, type TranscriptFacts } from "./transcript.ts";

/** One subagent of a session, by its own transcript. */
interface SubagentThread {
  thread_id: string;
  parent_thread_id: string;
  agent_path: string | null;
  /** The call of its parent that spawned it; null = not told. */
  spawned_by: string | null;
  transcript: TranscriptFacts;
}

/** All transcripts of a session. */
export interface SessionTranscripts {
  root_id: string | null;
  root: TranscriptFacts;
  /** Parents before their children, in the order in which they were spawned. */
  subagents: SubagentThread[];
  /** Threads that were spawned, and why their transcripts are not among these. */
  leftOut: { thread_id: string; why: string }[];
}

export interface ThreadsOptions {
  /** The root's transcript, from its beginning. */
  root: AsyncIterable<Uint8Array>;
  /** null: as its transcript says. */
  rootId?: string | null;
  /** Threads that the events tell of: agents of the first kind. */
  told?: readonly string[];
  habits?: Pick<TranscriptHabits, "modelCalls">;
  /** The transcript of a subagent; null = there is none, or it is too large. */
  open: (threadId: string) => Promise<AsyncIterable<Uint8Array> | null>;
  maxThreads?: number;
}

/** More agents than Codex runs beside each other by default (0.144.4 and 0.171.0: 6), and as many again and again. */
const MAX_THREADS = 64;

/**
 * Reads the transcripts of a session's root and of every thread that one of them, or an event, says it spawned. So a file is read only if its parent's transcript names its thread, and if it says itself that it belongs to that parent and
 * that root: what the model wrote beside them, or a Codex that it ran, is not taken. Rejects when the root's cannot be read.
 */
export async function readThreads(options: ThreadsOptions): Promise<SessionTranscripts> {
  const { told = [], habits, open, maxThreads = MAX_THREADS } = options;
  const reading = { memory: new TranscriptMemory(), ...(habits === undefined ? {} : { habits }) };
  const root = await readTranscript(options.root, reading);
  const rootId = options.rootId ?? root.meta?.thread_id ?? null;
  if (rootId === null) return { root_id: null, root, subagents: [], leftOut: [] };
  const subagents: SubagentThread[] = [];
  const leftOut: SessionTranscripts["leftOut"] = [];
  const known = new Set([rootId]);
  const pending = spawnedBy(rootId, root);
  for (const thread_id of told) pending.push({ thread_id, parent_thread_id: rootId, spawned_by: null });
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const { thread_id, parent_thread_id, spawned_by } = next;
    if (known.has(thread_id)) continue;
    known.add(thread_id);
    const leave = (why: string): number => leftOut.push({ thread_id, why });
    if (subagents.length + leftOut.length >= maxThreads) {
      leave(`more than ${maxThreads} threads`);
      break;
    }
    const transcript = await transcriptOf(thread_id, open, reading);
    if (typeof transcript === "string") leave(transcript);
    else if (!isOf(transcript, thread_id, parent_thread_id, rootId)) leave("it says that it is another's");
    else {
      subagents.push({ thread_id, parent_thread_id, agent_path: transcript.meta?.agent_path ?? null, spawned_by, transcript });
      pending.push(...spawnedBy(thread_id, transcript));
    }
  }
  return { root_id: rootId, root, subagents, leftOut };
}

interface Spawned {
  thread_id: string;
  parent_thread_id: string;
  spawned_by: string | null;
}

/** Told by records; or, of an agent of the first kind in 0.144.4, only by what the spawning call answered. */
function spawnedBy(parent_thread_id: string, { spawned, calls }: TranscriptFacts): Spawned[] {
  const answered = calls.flatMap((call) => {
    if (call.name !== "spawn_agent" || call.output === null) return [];
    const thread_id = /^\{"agent_id":"([0-9A-Za-z-]{1,64})"/.exec(call.output)?.[1];
    return thread_id === undefined ? [] : [{ thread_id, call_id: call.call_id }];
  });
  return [...spawned, ...answered].map(({ thread_id, call_id }) => ({ thread_id, parent_thread_id, spawned_by: call_id }));
}

async function transcriptOf(threadId: string, open: ThreadsOptions["open"], reading: ReadingOptions): Promise<TranscriptFacts | string> {
  try {
    const source = await open(threadId);
    return source === null ? "there is none, or too much of it" : await readTranscript(source, { ...reading, subagent: true });
  } catch {
    return "it cannot be read";
  }
}

function isOf({ meta }: TranscriptFacts, threadId: string, parentId: string, rootId: string): boolean {
  return meta !== null && meta.thread_id === threadId && meta.parent_thread_id === parentId && meta.session_id === rootId;
}
