// SPDX-License-Identifier: Apache-2.0
import { openTranscript } from "../artifacts/evidence.ts";
import type { TranscriptHabits } from "../codex/profile.ts";
import type { SessionFacts } from "../codex/session.ts";
import type { JoinedSession } from "../codex/transcript-join.ts";
import { readThreads, type SessionTranscripts } from "../codex/transcript-threads.ts";
import type { ObservationGap } from "../contract/observation.ts";

/** Of the subagents of one session together; of one as much as is kept of it. */
const MAX_SUBAGENT_BYTES = 256 * 1024 * 1024;
const MAX_BYTES_OF_ONE = 64 * 1024 * 1024;

/**
 * What Codex's own transcripts of the session say; null when its root left none, or it could not be read before `signal` aborted.
 * Never throws.
 */
export async function readOwnTranscripts(
  codexHome: string,
  { threadId, spawnedThreads }: Pick<SessionFacts, "threadId" | "spawnedThreads">,
  habits: TranscriptHabits,
  signal: AbortSignal,
): Promise<SessionTranscripts | null> {
  if (threadId === null) return null;
  let left = MAX_SUBAGENT_BYTES;
  const fits = (bytes: number): boolean => {
    if (bytes > Math.min(left, MAX_BYTES_OF_ONE)) return false;
    left -= bytes;
    return true;
  };
  try {
    const root = await openTranscript(codexHome, threadId, signal);
    if (root === null) return null;
    const open = (id: string): ReturnType<typeof openTranscript> => openTranscript(codexHome, id, signal, fits);
    return await readThreads({ root, rootId: threadId, told: spawnedThreads, habits, open });
  } catch {
    return null; // then the events are all there is
  }
}

/** What the transcripts could not tell, and in what they and the events differ. Pure; `redact` is for what Codex did not write itself. */
export function transcriptGaps(joined: JoinedSession, invocation_id: string, redact: (text: string) => string): ObservationGap[] {
  const { facts, unparseableRecords, outcomesUnknown, disagreements, leftOut } = joined;
  const gaps: ObservationGap[] = [];
  if (unparseableRecords > 0) {
    gaps.push({ code: "agent_artifact_record_unparseable", invocation_id, detail: JSON.stringify({ count: unparseableRecords }) });
  }
  for (const { thread_id, why } of leftOut) {
    gaps.push({ code: "agent_artifact_unavailable", invocation_id, detail: JSON.stringify({ transcript: redact(thread_id), why }) });
  }
  for (const id of outcomesUnknown) gaps.push({ code: "tool_outcome_unavailable", invocation_id, detail: redact(id) });
  for (const call of facts.toolCalls) {
    if (call.invocation_id === invocation_id || call.status !== "incomplete") continue;
    gaps.push({ code: "tool_outcome_unavailable", invocation_id: call.invocation_id, detail: redact(call.tool_call_id) });
  }
  for (const one of disagreements) {
    const told =
      "tool" in one ? { ...one, tool: redact(one.tool) } : "tool_call_id" in one ? { ...one, tool_call_id: redact(one.tool_call_id) } : one;
    gaps.push({ code: "transcript_disagrees", invocation_id, detail: JSON.stringify(told) });
  }
  return gaps;
}
