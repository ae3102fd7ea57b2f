// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import type { ResponseItem } from "../contract/response.ts";
import { readCommandOutput } from "./command-output.ts";
import { commandOutput } from "./items.ts";
import type { SessionFacts } from "./session.ts";
import { compareWithTranscript, type Disagreement } from "./transcript-compare.ts";
import { toolCallRecord } from "./tool-calls.ts";
import { matchCalls, toolOf } from "./transcript-match.ts";
import type { TranscriptCall, TranscriptFacts } from "./transcript.ts";
import { usageOfTotals } from "./usage.ts";

/** The events of a session with what its transcript adds. */
export interface JoinedSession {
  facts: SessionFacts;
  /** From a transcript with response ids; else []. */
  modelCalls: { response_id: string }[];
  /** Every model call of the session has its response id in `modelCalls`. */
  joinKeysKnown: boolean;
  /** When the context was compacted, in Unix seconds; null = the transcript does not tell. */
  compactions: (number | null)[] | null;
  /** The commands that ran, as far as anybody saw, when the session ended; "" for one whose text is not known. */
  runningCommands: string[];
  /** Ids of calls of which neither side tells the end. */
  outcomesUnknown: string[];
  disagreements: Disagreement[];
  unparseableRecords: number;
}

/** What the end of a command is known to be from the transcript. */
interface KnownCommand {
  output: string;
  exitCode: number | null;
  truncated: boolean;
  at: number | null;
}

/**
 * Joins the events with the transcript; null = there is none. Pure. The transcript gives call ids, the ends of commands that the
 * events lost, the output that 0.144.4's events lost at a command's beginning, the command that ended Codex before its events told of it, and the tokens
 * of a turn that did not end. It never decides: the model can write to that file, so the verdict, MCP calls' ends and what was handed in are those of the events.
 */
export function joinTranscript(events: SessionFacts, transcript: TranscriptFacts | null, invocationId: string): JoinedSession {
  if (transcript === null) return withoutTranscript(events);
  const matched = matchCalls(events, transcript.calls);
  const commands = knownCommands(transcript.calls);
  const idOf = (id: string): string => matched.get(id)?.call_id ?? id;
  const commandOf = (id: string): KnownCommand | undefined => commands.get(matched.get(id)?.call_id ?? "");

  const ended = new Map<string, ToolCallRecord>();
  const toolCalls = events.toolCalls.map((record) => {
    const completed = completedCommand(record, commandOf(record.tool_call_id));
    if (completed !== record) ended.set(record.tool_call_id, completed);
    return { ...completed, tool_call_id: idOf(record.tool_call_id) };
  });
  const items = events.items.map((item) => joinedItem(item, idOf, commandOf, ended));
  const wellEnded = [...ended.values()].filter(({ status }) => status === "completed").length;
  const toolsCalled =
    wellEnded === 0 ? events.toolsCalled : { ...events.toolsCalled, exec_command: (events.toolsCalled["exec_command"] ?? 0) + wellEnded };
  const untold = untoldCommands(events, transcript, matched);
  const facts: SessionFacts = {
    ...events,
    items: [...items, ...untold.flatMap(untoldItems)],
    toolCalls: [...toolCalls, ...untold.map((call) => untoldRecord(call, invocationId))],
    toolsCalled,
    toolStartsMissing: [...events.toolStartsMissing.map(idOf), ...untold.map(({ call_id }) => call_id)],
    modelAnswered: events.modelAnswered ?? transcript.modelAnswered,
    // Events tell usage only at the end of a turn, which a session that is stopped does not reach.
    usage: events.usage ?? (transcript.usage === null ? null : usageOfTotals(transcript.usage)),
  };
  const isWhole = transcript.unparseableRecords === 0 && transcript.dropped === 0;
  const named = transcript.modelCalls.flatMap(({ response_id }) => (response_id === null ? [] : [{ response_id }]));
  return {
    facts,
    modelCalls: named,
    joinKeysKnown: named.length > 0 && isWhole && transcript.taskComplete && events.streamErrors === 0,
    compactions: isWhole || transcript.compactions.length > 0 ? transcript.compactions : null,
    runningCommands: runningCommands(facts, transcript.calls),
    outcomesUnknown: facts.toolCalls.filter((record) => isUnknown(record, transcript)).map(({ tool_call_id }) => tool_call_id),
    disagreements: compareWithTranscript(events, transcript, matched),
    unparseableRecords: transcript.unparseableRecords,
  };
}

function withoutTranscript(facts: SessionFacts): JoinedSession {
  return {
    facts,
    modelCalls: [],
    joinKeysKnown: false,
    compactions: null,
    runningCommands: runningCommands(facts, []),
    outcomesUnknown: facts.toolCalls.filter(({ status }) => status === "incomplete").map(({ tool_call_id }) => tool_call_id),
    disagreements: [],
    unparseableRecords: 0,
  };
}

/** At most; one reply rarely has more. */
const MAX_UNTOLD = 100;

/**
 * Commands without an end of which no event tells: 0.144.4 writes a command's first event some 100 ms after it began, and a command
 * that kills Codex is quicker. Not of a turn that ended: there the events are whole.
 */
function untoldCommands(
  { turnCompleted, eventsDropped }: SessionFacts,
  { calls, dropped }: TranscriptFacts,
  matched: ReadonlyMap<string, TranscriptCall>,
): TranscriptCall[] {
  if (turnCompleted || eventsDropped > 0 || dropped > 0) return [];
  const told = new Set([...matched.values()].map(({ call_id }) => call_id));
  const isUntold = (call: TranscriptCall): boolean =>
    toolOf(call) === "exec_command" && call.output === null && call.command === null && !told.has(call.call_id);
  return calls.filter(isUntold).slice(0, MAX_UNTOLD);
}

function untoldRecord({ call_id }: TranscriptCall, invocationId: string): ToolCallRecord {
  const use = { toolName: "exec_command", serverName: null, failed: false, errorType: null };
  return toolCallRecord(use, { invocationId, id: call_id, startedAt: null, completedAt: null });
}

function untoldItems({ call_id, name, arguments: args }: TranscriptCall): ResponseItem[] {
  return [
    { type: "function_call", id: call_id, call_id, name, arguments: args, status: "incomplete" },
    { type: "function_call_output", id: `${call_id}_output`, call_id, output: "", status: "incomplete" },
  ];
}

function isRunningCommand({ tool_name, server_name, status }: ToolCallRecord): boolean {
  return tool_name === "exec_command" && server_name === undefined && status === "incomplete";
}

/** Of the events, and those of which only the transcript tells. */
function runningCommands(facts: SessionFacts, calls: readonly TranscriptCall[]): string[] {
  const running = new Map<string, string>();
  const texts = new Map(facts.items.flatMap((item) => (item.type === "function_call" ? [[item.call_id, item.arguments]] : [])));
  for (const call of facts.toolCalls) {
    if (isRunningCommand(call)) running.set(call.tool_call_id, commandText(texts.get(call.tool_call_id) ?? ""));
  }
  for (const { call_id, name, output, arguments: text } of calls) {
    if (name === "exec_command" && output === null) running.set(call_id, running.get(call_id) || commandText(text));
  }
  return [...running.values()];
}

function commandText(argumentsJson: string): string {
  try {
    const { cmd } = JSON.parse(argumentsJson) as { cmd?: unknown };
    return typeof cmd === "string" ? cmd : "";
  } catch {
    return ""; // the model wrote it
  }
}

/** A plan's item ends with its turn, so its call's own answer tells. */
function isUnknown({ tool_call_id, status, tool_name }: ToolCallRecord, { calls }: TranscriptFacts): boolean {
  if (status !== "incomplete") return false;
  return tool_name !== "todo_list" || calls.every(({ call_id, output }) => call_id !== tool_call_id || output === null);
}

/** What each command wrote and how it ended, by its call_id; write_stdin goes on with the command it names. */
function knownCommands(calls: readonly TranscriptCall[]): Map<string, KnownCommand> {
  const known = new Map<string, KnownCommand>();
  const running = new Map<number, KnownCommand>();
  for (const call of calls) {
    const told = call.output === null ? null : readCommandOutput(call.output);
    if (call.name === "exec_command" && !call.patched) {
      const { command } = call;
      if (told === null && command === null) continue;
      const entry: KnownCommand = {
        output: told?.output ?? command?.output ?? "",
        exitCode: told?.exitCode ?? command?.exit_code ?? null,
        truncated: told?.truncated ?? false,
        at: command?.at ?? call.output_at,
      };
      known.set(call.call_id, entry);
      if (told !== null && told.sessionId !== null) running.set(told.sessionId, entry);
    } else if (call.name === "write_stdin" && told !== null) {
      const entry = running.get(sessionOf(call.arguments));
      if (entry === undefined) continue;
      entry.output += told.output;
      entry.truncated ||= told.truncated;
      entry.exitCode ??= told.exitCode;
      entry.at = call.output_at;
    }
  }
  return known;
}

function sessionOf(argumentsJson: string): number {
  return Number(/"session_id"\s*:\s*(\d+)/.exec(argumentsJson)?.[1] ?? Number.NaN);
}

/** A command whose end the events lost (0.144.4, when the turn ends soon after it). */
function completedCommand(record: ToolCallRecord, known: KnownCommand | undefined): ToolCallRecord {
  if (!isRunningCommand(record) || known === undefined || known.exitCode === null) return record;
  const begun = record.started_at === null ? null : Date.parse(record.started_at);
  const at = known.at === null ? null : Math.max(known.at * 1000, begun ?? 0);
  return {
    ...record,
    completed_at: at === null ? null : new Date(at).toISOString(),
    duration_ms: at === null || begun === null ? null : Math.round(at - begun),
    status: known.exitCode === 0 ? "completed" : "failed",
    error_type: known.exitCode === 0 ? null : "exit_code",
  };
}

function joinedItem(
  item: ResponseItem,
  idOf: (id: string) => string,
  commandOf: (id: string) => KnownCommand | undefined,
  ended: ReadonlyMap<string, ToolCallRecord>,
): ResponseItem {
  if (item.type !== "function_call" && item.type !== "function_call_output") return item;
  const call_id = idOf(item.call_id);
  const record = ended.get(item.call_id);
  if (item.type === "function_call") {
    return { ...item, call_id, status: record === undefined ? item.status : record.status === "completed" ? "completed" : "incomplete" };
  }
  const known = commandOf(item.call_id);
  const whole = known === undefined || known.truncated ? null : commandOutput(known.output, known.exitCode);
  const lostItsBeginning = whole !== null && whole.length > item.output.length && whole.endsWith(item.output);
  return {
    ...item,
    call_id,
    status: record === undefined ? item.status : "completed",
    output: lostItsBeginning
      ? whole
      : record !== undefined && known !== undefined
        ? commandOutput(known.output, known.exitCode)
        : item.output,
  };
}
