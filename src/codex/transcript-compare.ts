// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import { readCommandOutput } from "./command-output.ts";
import { commandOutput } from "./items.ts";
import type { TranscriptHabits } from "./profile.ts";
import type { SessionFacts } from "./session.ts";
import { toolOf } from "./transcript-match.ts";
import type { TranscriptCall, TranscriptFacts } from "./transcript.ts";

/** One thing in which the events and the transcript differ; not redacted. */
export type Disagreement =
  /** Calls that only one side has. */
  | { what: "tool_calls"; tool: string; events: number; transcript: number }
  | {
      what: "usage";
      counter: (typeof COUNTERS)[number];
      events: number;
      transcript: number;
    }
  | { what: "output" | "status"; tool_call_id: string };

const COUNTERS = ["input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens"] as const;
const MAX_DISAGREEMENTS = 20;

/**
 * In what the events and the root's transcript differ, at most 20 things. Only of a turn that both saw complete: when Codex is killed, either may be behind the
 * other. Pure.
 */
export function compareWithTranscript(
  events: SessionFacts,
  transcript: TranscriptFacts,
  matched: ReadonlyMap<string, TranscriptCall>,
  habits: Pick<TranscriptHabits, "nestedCommands">,
): Disagreement[] {
  if (!events.turnCompleted || !transcript.taskComplete || events.eventsDropped > 0 || events.cutLines > 0 || transcript.dropped > 0)
    return [];
  return [
    ...usageDifferences(events, transcript),
    ...callDifferences(events, transcript, matched, habits),
    ...endDifferences(events, matched),
  ].slice(0, MAX_DISAGREEMENTS);
}

function usageDifferences({ usage }: SessionFacts, transcript: TranscriptFacts): Disagreement[] {
  if (usage === null || transcript.usage === null) return [];
  const total = transcript.usage;
  return COUNTERS.flatMap((counter): Disagreement[] => {
    const [told, counted] = [usage[counter], total[counter]];
    return told === null || counted === null || told === counted ? [] : [{ what: "usage", counter, events: told, transcript: counted }];
  });
}

/**
 * Calls that Codex refused to run have no event; one plan is one item, however often it is updated; and where a version does not
 * record a script's commands, those of the events are not missed.
 */
function callDifferences(
  events: SessionFacts,
  { calls }: TranscriptFacts,
  matched: ReadonlyMap<string, TranscriptCall>,
  { nestedCommands }: Pick<TranscriptHabits, "nestedCommands">,
): Disagreement[] {
  const mayBeUnrecorded = !nestedCommands && calls.some(({ name, nested }) => name === "exec" && !nested);
  const joined = new Set([...matched.values()].map(({ call_id }) => call_id));
  const missing = new Map<string, { events: number; transcript: number }>();
  const count = (tool: string, side: "events" | "transcript"): void => {
    const counts = missing.get(tool) ?? { events: 0, transcript: 0 };
    counts[side]++;
    missing.set(tool, counts);
  };
  for (const call of calls) {
    if (!joined.has(call.call_id) && didRun(call)) count(call.mcp?.tool ?? toolOf(call) ?? call.name, "transcript");
  }
  for (const { tool_call_id, tool_name, status } of events.toolCalls) {
    const isShown = tool_name === "todo_list" || tool_name === "web_search" || status === "incomplete";
    const isOfScript = mayBeUnrecorded && tool_name === "exec_command";
    if (!isShown && !isOfScript && !matched.has(tool_call_id)) count(tool_name, "events");
  }
  return [...missing].map(([tool, counts]) => ({ what: "tool_calls", tool, ...counts }));
}

function didRun(call: TranscriptCall): boolean {
  if (call.patched || call.mcp !== null || call.command !== null) return true;
  return call.name === "exec_command" && call.output !== null && readCommandOutput(call.output) !== null;
}

function endDifferences(events: SessionFacts, matched: ReadonlyMap<string, TranscriptCall>): Disagreement[] {
  const outputs = new Map(
    events.items.flatMap((item) => (item.type === "function_call_output" ? [[item.call_id, item.output] as const] : [])),
  );
  return events.toolCalls.flatMap((record): Disagreement[] => {
    const call = matched.get(record.tool_call_id);
    const shown = outputs.get(record.tool_call_id);
    if (call === undefined || shown === undefined || record.status === "incomplete") return [];
    if (call.mcp !== null && call.mcp.failed === (record.status === "completed")) return [{ what: "status", tool_call_id: call.call_id }];
    return isSameOutput(record, shown, call) ? [] : [{ what: "output", tool_call_id: call.call_id }];
  });
}

/** The end of an output is the same output: 0.144.4's events lose the beginning. What was shortened for the model tells nothing. */
function isSameOutput(record: ToolCallRecord, shown: string, call: TranscriptCall): boolean {
  if (call.mcp !== null) return call.mcp.text === null || record.status !== "completed" || call.mcp.text === shown;
  const told = call.name === "exec_command" && !call.patched && call.output !== null ? readCommandOutput(call.output) : null;
  if (told === null || told.truncated || told.sessionId !== null) return true;
  return commandOutput(told.output, told.exitCode).endsWith(shown);
}
