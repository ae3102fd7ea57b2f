// SPDX-License-Identifier: Apache-2.0
import type { Tokens } from "../contract/result.ts";
import { readLines } from "./lines.ts";
import type { TranscriptHabits } from "./profile.ts";
import { ModelCallCount, type ModelCallFacts } from "./transcript-model-calls.ts";
import { parseTranscriptRecord, type ThreadMeta, type TranscriptRecord } from "./transcript-records.ts";

/** One tool call as the model made it, itself or from a script of code mode, and what became of it. */
export interface TranscriptCall {
  call_id: string;
  name: string;
  namespace: string | null;
  /** JSON text, as the model wrote it; of a nested call as Codex tells it, "" where it does not. */
  arguments: string;
  /** A script made it: its end is its only record, and the model saw of it what the script printed. */
  nested: boolean;
  /** Unix seconds; of a nested call null. */
  made_at: number | null;
  /** What the model was given, with Codex's own lines before it; null = nothing yet, or not kept. */
  output: string | null;
  /** Unix seconds. */
  output_at: number | null;
  mcp: { server: string; tool: string; failed: boolean; text: string | null; error: string | null; duration_ms: number | null } | null;
  /** 0.171.0 tells the end of a command apart from what the model saw. */
  command: { output: string; exit_code: number | null; at: number | null } | null;
  patched: boolean;
  patch_failed: boolean;
  /** When the tool itself ended, in Unix seconds; null = not told. */
  ended_at: number | null;
}

/** Everything that Codex's own transcript says of a thread. The model can write to that file: evidence, not authority. */
export interface TranscriptFacts {
  /** null: its first record does not tell. */
  meta: ThreadMeta | null;
  /** In the order in which the model made them; a call_id that came twice is in {@link repeatedCallIds} only. */
  calls: TranscriptCall[];
  repeatedCallIds: string[];
  /** What the model said, in order: `before` = how many calls it had made until then. Only of a subagent: the events tell of the root. */
  messages: { text: string; before: number }[];
  /** One for each answered model call, as far as they were kept; response ids are in the transcripts of 0.171.0, not of 0.144.4. */
  modelCalls: ModelCallFacts[];
  /** Of all answered calls, kept or not. */
  answeredCalls: number;
  /** The model made a call after that, and the session ended before its tokens were told: an answer more. */
  lastAnswerUncounted: boolean;
  /** Calls that had begun when the thread ended, and whose tokens no record tells: 0 or 1. */
  openCalls: number;
  /** Of all model calls together; null = none was told. */
  usage: Tokens | null;
  /** Threads that it spawned, and by which call. */
  spawned: { thread_id: string; call_id: string }[];
  /** When the context was compacted, in Unix seconds. */
  compactions: (number | null)[];
  /** The model said something: a message, a thought, a call, a token count. */
  modelAnswered: boolean;
  taskComplete: boolean;
  /** How its last turn ended; "unknown": it ended, and the version does not tell how. */
  ending: "completed" | "failed" | "incomplete" | "unknown";
  /** Unix seconds, of its own first and last record that has a time. */
  begun_at: number | null;
  ended_at: number | null;
  unknownRecords: number;
  /** Lines that are no record, a cut last one too, and records too long or malformed. */
  unparseableRecords: number;
  /** Outputs and calls that were not kept because there were too many bytes of them. */
  dropped: number;
}

/** How much of the transcripts of one session may be kept in memory; shared by all of them. */
export class TranscriptMemory {
  #left: number;

  constructor(bytes: number = MAX_BYTES) {
    this.#left = bytes;
  }

  /** Whether there is room; what has none is not kept. */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }
}

export interface ReadingOptions {
  memory?: TranscriptMemory;
  /** Of the Codex that wrote it. Without it the tokens are read from records, and from totals where there is no record. */
  habits?: Pick<TranscriptHabits, "modelCalls">;
  /** Nothing else tells of it: its messages are kept, and a call counts as much as an item of the events. */
  subagent?: boolean;
}

const MAX_LINE_BYTES = 8 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;
/** What the smallest record that is kept costs in memory. */
const RECORD_OVERHEAD = 256;
/** What a subagent's call costs until it stands in the result: as an item of the events. */
const SUBAGENT_CALL_OVERHEAD = 4_096;
const MAX_SPAWNED = 1_000;
/** Codex names so the calls that a script makes (0.144.4 and 0.171.0). */
const NESTED_ID = "exec-";
/** What a call is answered when its turn is aborted: no model call follows. */
const ABORTED = /^(?:Wall time: [^\n]*\n)?aborted by user\b/;

/** Reads a transcript (rollout-*.jsonl) line by line, in bounded memory. Rejects with the stream's error. */
export async function readTranscript(chunks: AsyncIterable<Uint8Array>, options: ReadingOptions = {}): Promise<TranscriptFacts> {
  const transcript = new Transcript(options);
  for await (const line of readLines(chunks, MAX_LINE_BYTES)) transcript.line(line.kind === "whole" ? line.text : null);
  return transcript.facts();
}

/** How often the model has answered. Pure. */
export function answeredCalls({ answeredCalls: told, lastAnswerUncounted }: TranscriptFacts): number {
  return told + (lastAnswerUncounted ? 1 : 0);
}

class Transcript {
  readonly #memory: TranscriptMemory;
  readonly #subagent: boolean;
  readonly #modelCalls: ModelCallCount;
  #meta: ThreadMeta | null = null;
  /** Until a forked thread's first own turn, its records are copies of its parent's. */
  #own = true;
  readonly #calls = new Map<string, TranscriptCall>();
  readonly #repeated = new Set<string>();
  readonly #messages: TranscriptFacts["messages"] = [];
  readonly #spawned: TranscriptFacts["spawned"] = [];
  readonly #compactions: (number | null)[] = [];
  #modelAnswered = false;
  #taskComplete = false;
  #ending: TranscriptFacts["ending"] = "incomplete";
  #begunAt: number | null = null;
  #endedAt: number | null = null;
  #unknown = 0;
  #unparseable = 0;
  #dropped = 0;

  constructor({ memory = new TranscriptMemory(), habits, subagent = false }: ReadingOptions) {
    this.#memory = memory;
    this.#subagent = subagent;
    this.#modelCalls = new ModelCallCount(habits?.modelCalls ?? null, () => this.#fits(""));
  }

  /** null: a line that was too long. */
  line(text: string | null): void {
    if (text?.trim() === "") return;
    const read = text === null ? null : parseTranscriptRecord(jsonOf(text));
    if (read === null) this.#unparseable++;
    else if (read.known) this.#apply(read.record, read.at);
    else this.#unknown++;
  }

  facts(): TranscriptFacts {
    const repeated = this.#repeated;
    return {
      meta: this.#meta,
      calls: [...this.#calls.values()].filter(({ call_id }) => !repeated.has(call_id)),
      repeatedCallIds: [...repeated],
      messages: this.#messages,
      ...this.#modelCalls.facts(),
      spawned: this.#spawned,
      compactions: this.#compactions,
      modelAnswered: this.#modelAnswered,
      taskComplete: this.#taskComplete,
      ending: this.#ending,
      begun_at: this.#begunAt,
      ended_at: this.#endedAt,
      unknownRecords: this.#unknown,
      unparseableRecords: this.#unparseable,
      dropped: this.#dropped,
    };
  }

  #apply(record: TranscriptRecord, at: number | null): void {
    if (record.kind === "meta") {
      // A forked thread's second one is its parent's.
      if (this.#meta !== null) return;
      this.#meta = record.meta;
      this.#own = !record.meta.forked;
    } else if (this.#own || this.#isOwnBegin(record)) {
      this.#own = true;
      this.#begunAt ??= at;
      this.#endedAt = at ?? this.#endedAt;
      this.#applyOwn(record, at);
    } else if (record.kind === "totals") {
      this.#modelCalls.copied(record.total);
    }
  }

  /** Both ids are UUIDs of version 7, in the order of time: a turn that began after the thread did is no copy. */
  #isOwnBegin(record: TranscriptRecord): boolean {
    return record.kind === "turn_started" && this.#meta !== null && record.turn_id > this.#meta.thread_id;
  }

  #applyOwn(record: Exclude<TranscriptRecord, { kind: "meta" }>, at: number | null): void {
    switch (record.kind) {
      case "turn_started":
        this.#ending = "incomplete";
        this.#modelCalls.begun();
        return;
      case "turn_ended":
        this.#taskComplete = true;
        this.#ending = record.failed === true ? "failed" : record.said !== null ? "completed" : "unknown";
        this.#modelCalls.ended();
        return;
      case "turn_aborted":
        this.#ending = "incomplete";
        return;
      case "call":
        this.#modelAnswered = true;
        this.#modelCalls.answering("call");
        this.#addCall(record, at);
        return;
      case "output":
        this.#modelCalls.given({ last: ABORTED.test(record.output) });
        this.#toCall(record.call_id, record.output, (call) => Object.assign(call, { output: record.output, output_at: at }));
        return;
      case "mcp_end":
        this.#ofTool(
          record.call_id,
          { name: record.tool, arguments: record.arguments ?? "" },
          record.text ?? record.error ?? "",
          (call) => {
            const { kind: _kind, call_id: _id, arguments: _arguments, ...mcp } = record;
            Object.assign(call, { mcp, ended_at: at });
          },
        );
        return;
      case "command_end":
        this.#ofTool(
          record.call_id,
          { name: "exec_command", arguments: JSON.stringify({ cmd: record.command }) },
          record.output,
          (call) => {
            Object.assign(call, { command: { output: record.output, exit_code: record.exit_code, at }, ended_at: at });
          },
        );
        return;
      case "patch_end":
        this.#ofTool(record.call_id, { name: "apply_patch", arguments: record.changes }, "", (call) => {
          Object.assign(call, { patched: true, patch_failed: record.failed, ended_at: at });
        });
        return;
      case "totals":
        if (record.total !== null) this.#modelAnswered = true;
        this.#modelCalls.totals(record.total, at);
        return;
      case "model_call":
        if (record.thread_id !== null && this.#meta !== null && record.thread_id !== this.#meta.thread_id) return;
        this.#modelAnswered = true;
        this.#modelCalls.told(record, at);
        return;
      case "answer":
        this.#modelAnswered = true;
        this.#modelCalls.answering("words");
        if (this.#subagent && record.text !== null && this.#fits(record.text)) {
          this.#messages.push({ text: record.text, before: this.#calls.size });
        }
        return;
      case "spawned":
        if (this.#spawned.length < MAX_SPAWNED) this.#spawned.push({ thread_id: record.thread_id, call_id: record.call_id });
        return;
      case "compaction":
        this.#modelCalls.compacted();
        if (this.#fits("")) this.#compactions.push(at);
        return;
      case "other":
        return;
      default:
        record satisfies never;
    }
  }

  #addCall({ kind: _kind, ...made }: Extract<TranscriptRecord, { kind: "call" }>, at: number | null): void {
    if (!this.#fits(made.call_id + made.name + made.arguments, this.#subagent ? SUBAGENT_CALL_OVERHEAD : RECORD_OVERHEAD)) return;
    if (this.#calls.has(made.call_id)) this.#repeated.add(made.call_id);
    else this.#calls.set(made.call_id, { ...newCall(made), made_at: at });
  }

  /** The end of a tool: of a call that the model made, or of one that a script made, which had no record before. */
  #ofTool(callId: string, made: { name: string; arguments: string }, kept: string, change: (call: TranscriptCall) => void): void {
    if (!this.#calls.has(callId) && callId.startsWith(NESTED_ID)) {
      const overhead = this.#subagent ? SUBAGENT_CALL_OVERHEAD : RECORD_OVERHEAD;
      if (!this.#fits(callId + made.name + made.arguments, overhead)) return;
      this.#calls.set(callId, { ...newCall({ call_id: callId, namespace: null, ...made }), nested: true });
    }
    this.#toCall(callId, kept, change);
  }

  #toCall(callId: string, kept: string, change: (call: TranscriptCall) => void): void {
    const call = this.#calls.get(callId);
    if (call !== undefined && this.#fits(kept)) change(call);
  }

  #fits(text: string, overhead: number = RECORD_OVERHEAD): boolean {
    if (this.#memory.take(text.length + overhead)) return true;
    this.#dropped++;
    return false;
  }
}

function newCall(made: Pick<TranscriptCall, "call_id" | "name" | "namespace" | "arguments">): TranscriptCall {
  return {
    ...made,
    nested: false,
    made_at: null,
    output: null,
    output_at: null,
    mcp: null,
    command: null,
    patched: false,
    patch_failed: false,
    ended_at: null,
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // counted by the caller
  }
}
