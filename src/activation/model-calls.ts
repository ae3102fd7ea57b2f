// SPDX-License-Identifier: Apache-2.0
import type { JoinedThread } from "../codex/joined-threads.ts";
import type { ModelCallFacts } from "../codex/transcript-model-calls.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { ModelCall, Thread } from "../contract/result.ts";

/** Of the calls of a session, so many stand in its record. */
const MAX_LISTED = 500;

type Counted = Pick<
  JoinedThread,
  "thread_id" | "parent_thread_id" | "agent_path" | "invocation_id" | "modelCalls" | "answeredCalls" | "openCalls" | "tokens"
>;

/** The agents of a session, the root first, and their model calls in the order of time; those without a time come last. Pure. */
export function modelCallsOf(threads: readonly Counted[]): { threads: Thread[]; model_calls: ModelCall[] } {
  const calls = threads.flatMap(({ thread_id, modelCalls }) => modelCalls.map((call) => ({ thread_id, call })));
  const inTime = calls.toSorted((one, other) => placeInTime(one.call) - placeInTime(other.call));
  return {
    threads: threads.map(({ thread_id, parent_thread_id, agent_path, answeredCalls, tokens, openCalls }) => ({
      thread_id,
      parent_thread_id,
      agent_path,
      model_calls: answeredCalls,
      tokens,
      open_model_calls: openCalls,
    })),
    model_calls: inTime.slice(0, MAX_LISTED).map(({ thread_id, call: { response_id, at, kind, usage } }) => ({
      thread_id,
      response_id,
      at: at === null ? null : new Date(at * 1000).toISOString(),
      kind,
      tokens: usage,
    })),
  };
}

/** Calls of which nobody knows whether they were answered, and how many are not listed. Pure. */
export function modelCallGaps(threads: readonly Counted[], invocation_id: string): ObservationGap[] {
  const gaps: ObservationGap[] = [];
  for (const thread of threads) {
    if (thread.openCalls === 0) continue;
    const detail = JSON.stringify({ thread_id: thread.thread_id, count: thread.openCalls });
    gaps.push({ code: "model_call_outcome_unknown", invocation_id: thread.invocation_id, detail });
  }
  const listed = Math.min(
    MAX_LISTED,
    threads.reduce((sum, { modelCalls }) => sum + modelCalls.length, 0),
  );
  const more = threads.reduce((sum, { answeredCalls }) => sum + answeredCalls, 0) - listed;
  if (more > 0) gaps.push({ code: "model_calls_unlisted", invocation_id, detail: JSON.stringify({ listed, more }) });
  return gaps;
}

function placeInTime({ at }: ModelCallFacts): number {
  return at ?? Number.MAX_SAFE_INTEGER;
}
