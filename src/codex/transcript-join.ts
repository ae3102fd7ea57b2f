// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import type { ResponseItem } from "../contract/response.ts";
import { failedScripts } from "./failed-scripts.ts";
import { commandOutput } from "./items.ts";
import { joinedThreads, type JoinedThread } from "./joined-threads.ts";
import { knownCommands, type KnownCommand } from "./known-commands.ts";
import type { TranscriptHabits } from "./profile.ts";
import type { SessionFacts } from "./session.ts";
import { toolCallRecord } from "./tool-calls.ts";
import { compareWithTranscript, type Disagreement } from "./transcript-compare.ts";
import { matchCalls, toolOf } from "./transcript-match.ts";
import type { SessionTranscripts } from "./transcript-threads.ts";
import type { TranscriptCall, TranscriptFacts } from "./transcript.ts";
import { sessionUsage } from "./usage.ts";

/** The events of a session with what its transcripts add. */
export interface JoinedSession {
  /** Tool calls of all threads, the root's first; items are the root's. */
  facts: SessionFacts;
  /** The root first; [] = there is no transcript. */
  threads: JoinedThread[];
  /** Every model call of the session has its response id in `threads`. */
  joinKeysKnown: boolean;
  /** When a thread's context was compacted is in `threads`; false = the transcripts do not tell. */
  compactionsKnown: boolean;
  /** The commands that ran, as far as anybody saw, when the session ended; "" for one whose text is not known. */
  runningCommands: string[];
  /** Ids of the root's calls of which neither side tells the end. */
  outcomesUnknown: string[];
  disagreements: Disagreement[];
  unparseableRecords: number;
  /** Of what not everything was read: threads, and records of theirs that did not fit into memory. */
  leftOut: { thread_id: string; why: string }[];
}

/**
 * Joins the events with the transcripts; null = there is none. Pure. The root's transcript gives call ids, the ends of commands that
 * the events lost, the output that 0.144.4's events lost at a command's beginning, the command that ended Codex before its events told of it, and the tokens
 * of a turn that did not end. It never decides: the model can write to that file, so the verdict, the root's MCP calls' ends and what it handed in are those of
 * the events. Of subagents, and of scripts that failed, no event tells: what they did is taken from the transcripts.
 */
export function joinTranscripts(
  events: SessionFacts,
  transcripts: SessionTranscripts | null,
  invocationId: string,
  habits: TranscriptHabits,
): JoinedSession {
  if (transcripts === null) return withoutTranscript(events);
  const { root: transcript, subagents } = transcripts;
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
  const threads = joinedThreads(transcripts, invocationId, habits);
  const ofSubagents = threads.flatMap((thread) => thread.toolCalls);
  const untold = untoldCommands(events, transcript, matched);
  const facts: SessionFacts = {
    ...events,
    items: [...items, ...untold.flatMap(untoldItems)],
    toolCalls: [
      ...toolCalls,
      ...untold.map((call) => untoldRecord(call, invocationId)),
      ...failedScripts(transcript.calls, invocationId),
      ...ofSubagents,
    ],
    toolsCalled: withCalls(events.toolsCalled, [...ended.values(), ...ofSubagents]),
    toolStartsMissing: [...events.toolStartsMissing.map(idOf), ...untold.map(({ call_id }) => call_id)],
    modelAnswered: events.modelAnswered ?? transcript.modelAnswered,
    usage: sessionUsage(events.usage, threads),
  };
  const all = [transcript, ...subagents.map((thread) => thread.transcript)];
  const isWhole = transcripts.leftOut.length === 0 && all.every((one) => one.unparseableRecords === 0 && one.dropped === 0);
  return {
    facts,
    threads,
    joinKeysKnown: isWhole && transcript.taskComplete && events.streamErrors === 0 && threads.every(isNamed),
    compactionsKnown: isWhole || transcript.compactions.length > 0,
    runningCommands: runningCommands(facts, transcript.calls, threads),
    outcomesUnknown: facts.toolCalls
      .filter((record) => record.invocation_id === invocationId && isUnknown(record, transcript))
      .map(({ tool_call_id }) => tool_call_id),
    disagreements: compareWithTranscript(events, transcript, matched, habits),
    unparseableRecords: all.reduce((sum, one) => sum + one.unparseableRecords, 0),
    leftOut: [...transcripts.leftOut, ...threads.flatMap(droppedRecords)],
  };
}

function withoutTranscript(facts: SessionFacts): JoinedSession {
  return {
    facts,
    threads: [],
    joinKeysKnown: false,
    compactionsKnown: false,
    runningCommands: runningCommands(facts, [], []),
    outcomesUnknown: facts.toolCalls.filter(({ status }) => status === "incomplete").map(({ tool_call_id }) => tool_call_id),
    disagreements: [],
    unparseableRecords: 0,
    leftOut: [],
  };
}

function isNamed({ modelCalls, answeredCalls, openCalls }: JoinedThread): boolean {
  return openCalls === 0 && modelCalls.length === answeredCalls && modelCalls.every(({ response_id }) => response_id !== null);
}

function droppedRecords({ thread_id, dropped }: JoinedThread): JoinedSession["leftOut"] {
  return dropped === 0 ? [] : [{ thread_id, why: `${dropped} records more than are kept in memory` }];
}

/** Successful calls by tool name, with those of which no event told. */
function withCalls(told: SessionFacts["toolsCalled"], more: readonly ToolCallRecord[]): SessionFacts["toolsCalled"] {
  const called = new Map(Object.entries(told));
  for (const { tool_name, status } of more) {
    if (status === "completed") called.set(tool_name, (called.get(tool_name) ?? 0) + 1);
  }
  return Object.fromEntries(called);
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

/** Of the events, and those of which only the transcripts tell. */
function runningCommands(facts: SessionFacts, calls: readonly TranscriptCall[], threads: readonly JoinedThread[]): string[] {
  const running = new Map<string, string>();
  const items = [...facts.items, ...threads.flatMap((thread) => thread.conversation)];
  const texts = new Map(items.flatMap((item) => (item.type === "function_call" ? [[item.call_id, item.arguments]] : [])));
  for (const call of facts.toolCalls) {
    if (isRunningCommand(call)) running.set(call.tool_call_id, commandText(texts.get(call.tool_call_id) ?? ""));
  }
  for (const { call_id, name, output, nested, arguments: text } of calls) {
    if (name === "exec_command" && output === null && !nested) running.set(call_id, running.get(call_id) || commandText(text));
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
