// SPDX-License-Identifier: Apache-2.0
import { openTranscript } from "../artifacts/evidence.ts";
import type { JoinedSession } from "../codex/transcript-join.ts";
import { readTranscript, type TranscriptFacts } from "../codex/transcript.ts";
import type { ObservationGap } from "../contract/observation.ts";

/** What Codex's own transcript says; null when there is none, or it could not be read before `signal` aborted. Never throws. */
export async function readOwnTranscript(codexHome: string, threadId: string, signal: AbortSignal): Promise<TranscriptFacts | null> {
  try {
    const source = await openTranscript(codexHome, threadId, signal);
    return source === null ? null : await readTranscript(source);
  } catch {
    return null; // then the events are all there is
  }
}

/** What the transcript could not tell, and in what it and the events differ. Pure; `redact` is for what Codex did not write itself. */
export function transcriptGaps(joined: JoinedSession, invocation_id: string, redact: (text: string) => string): ObservationGap[] {
  const { unparseableRecords, outcomesUnknown, disagreements } = joined;
  const gaps: ObservationGap[] = [];
  if (unparseableRecords > 0) {
    gaps.push({ code: "agent_artifact_record_unparseable", invocation_id, detail: JSON.stringify({ count: unparseableRecords }) });
  }
  for (const id of outcomesUnknown) gaps.push({ code: "tool_outcome_unavailable", invocation_id, detail: redact(id) });
  for (const one of disagreements) {
    const told =
      "tool" in one ? { ...one, tool: redact(one.tool) } : "tool_call_id" in one ? { ...one, tool_call_id: redact(one.tool_call_id) } : one;
    gaps.push({ code: "transcript_disagrees", invocation_id, detail: JSON.stringify(told) });
  }
  return gaps;
}
