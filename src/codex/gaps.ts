// SPDX-License-Identifier: Apache-2.0
import type { GapCode, ObservationGap } from "../contract/observation.ts";
import type { SessionFacts } from "./session.ts";
import type { SessionEnd, Verdict } from "./verdict.ts";

/** What the transcript supplied and the events never do. */
export interface SuppliedByTranscript {
  /** The response id of every model call (0.171.0). */
  joinKeys: boolean;
  /** When the context was compacted. */
  compactions: boolean;
  /** Which agents there were. */
  threads: boolean;
}

/**
 * What is not known of a session from its events, and from its transcripts if there are any. Pure. Gaps of other stages (skipped
 * grants, startup failure, artifacts) are theirs.
 */
export function sessionGaps(
  facts: SessionFacts,
  verdict: Verdict,
  end: SessionEnd,
  invocationId: string,
  supplied: SuppliedByTranscript = { joinKeys: false, compactions: false, threads: false },
): ObservationGap[] {
  const gaps: ObservationGap[] = [];
  const add = (code: GapCode, detail?: string): void => {
    gaps.push({ code, invocation_id: invocationId, ...(detail === undefined ? {} : { detail }) });
  };
  if (!supplied.joinKeys) add("model_call_join_key_unavailable");
  if (!supplied.threads) add("subagent_hierarchy_unavailable");
  if (!supplied.compactions) add("compaction_observations_unavailable");
  if (facts.usage === null || facts.usage.cached_input_tokens === null) add("cached_token_usage_unavailable");
  if (facts.usage === null || facts.usage.reasoning_output_tokens === null) add("reasoning_token_usage_unavailable");
  if (facts.usage === null || !facts.turnCompleted || facts.streamErrors > 0) add("partial_model_usage_unavailable");
  if (verdict.kind === "completed" || verdict.kind === "incomplete") {
    for (const { kind } of facts.advisories) {
      if (kind === "model_metadata") add("model_metadata_fallback", "warning");
      if (kind === "compaction") add("compaction_accuracy_advisory");
    }
  }
  if (facts.events === 0) add("agent_transcript_unavailable");
  if (end.code === null && end.signal === null) add("worker_exit_code_unavailable");
  for (const id of facts.toolStartsMissing) add("tool_start_unavailable", id);
  if (facts.unparsedLines > 0) add("stdout_lines_unparsed", JSON.stringify({ count: facts.unparsedLines }));
  if (facts.cutLines > 0 || facts.eventsDropped > 0) {
    const kept = facts.events - facts.eventsDropped - facts.cutLines;
    add("stdout_truncated", JSON.stringify({ kept, dropped: facts.eventsDropped, lines_cut: facts.cutLines }));
  }
  return gaps;
}
