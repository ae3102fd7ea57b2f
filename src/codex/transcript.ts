// SPDX-License-Identifier: Apache-2.0
import { readLines } from "./lines.ts";
import { parseTranscriptRecord, type TokenCounts, type TranscriptRecord } from "./transcript-records.ts";

/** One tool call as the model made it, and what became of it. */
export interface TranscriptCall {
  call_id: string;
  name: string;
  namespace: string | null;
  /** JSON text, as the model wrote it. */
  arguments: string;
  /** What the model was given, with Codex's own lines before it; null = nothing yet, or not kept. */
  output: string | null;
  /** Unix seconds. */
  output_at: number | null;
  mcp: { server: string; tool: string; failed: boolean; text: string | null; duration_ms: number | null } | null;
  /** 0.171.0 tells the end of a command apart from what the model saw. */
  command: { output: string; exit_code: number | null; at: number | null } | null;
  patched: boolean;
}

/** Everything that Codex's own transcript says of a session. The model can write to that file: evidence, not authority. */
export interface TranscriptFacts {
  /** In the order in which the model made them; a call_id that came twice is in {@link repeatedCallIds} only. */
  calls: TranscriptCall[];
  repeatedCallIds: string[];
  /** One for each model call; response ids are in the transcripts of 0.171.0, not of 0.144.4. */
  modelCalls: { response_id: string | null; usage: TokenCounts }[];
  /** The model made a call after that, and the session ended before its output: an answer more, whose tokens 0.144.4 counts after the output. */
  lastAnswerUncounted: boolean;
  /** Of all model calls together; null = none was told. */
  usage: TokenCounts | null;
  /** When the context was compacted, in Unix seconds. */
  compactions: (number | null)[];
  /** The model said something: a message, a thought, a call, a token count. */
  modelAnswered: boolean;
  taskComplete: boolean;
  unknownRecords: number;
  /** Lines that are no record, a cut last one too, and records too long or malformed. */
  unparseableRecords: number;
  /** Outputs and calls that were not kept because there were too many bytes of them. */
  dropped: number;
}

const MAX_LINE_BYTES = 8 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;
/** What the smallest record that is kept costs in memory. */
const RECORD_OVERHEAD = 256;

/** Reads a transcript (rollout-*.jsonl) line by line, in bounded memory. Rejects with the stream's error. */
export async function readTranscript(chunks: AsyncIterable<Uint8Array>, maxBytes: number = MAX_BYTES): Promise<TranscriptFacts> {
  const transcript = new Transcript(maxBytes);
  for await (const line of readLines(chunks, MAX_LINE_BYTES)) transcript.line(line.kind === "whole" ? line.text : null);
  return transcript.facts();
}

/** How often the model has answered. Pure. */
export function answeredCalls({ modelCalls, lastAnswerUncounted }: Pick<TranscriptFacts, "modelCalls" | "lastAnswerUncounted">): number {
  return modelCalls.length + (lastAnswerUncounted ? 1 : 0);
}

class Transcript {
  readonly #maxBytes: number;
  #bytes = 0;
  readonly #calls = new Map<string, TranscriptCall>();
  readonly #repeated = new Set<string>();
  /** From growing totals, which both versions write; and from records, which have ids. */
  readonly #byTotals: TokenCounts[] = [];
  readonly #byRecords: { response_id: string; usage: TokenCounts }[] = [];
  #total: TokenCounts | null = null;
  /** Calls without an output since tokens were last counted. */
  readonly #uncounted = new Set<string>();
  readonly #compactions: (number | null)[] = [];
  #modelAnswered = false;
  #taskComplete = false;
  #unknown = 0;
  #unparseable = 0;
  #dropped = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
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
      calls: [...this.#calls.values()].filter(({ call_id }) => !repeated.has(call_id)),
      repeatedCallIds: [...repeated],
      modelCalls: this.#byRecords.length > 0 ? this.#byRecords : this.#byTotals.map((usage) => ({ response_id: null, usage })),
      lastAnswerUncounted: this.#uncounted.size > 0,
      usage: this.#total,
      compactions: this.#compactions,
      modelAnswered: this.#modelAnswered,
      taskComplete: this.#taskComplete,
      unknownRecords: this.#unknown,
      unparseableRecords: this.#unparseable,
      dropped: this.#dropped,
    };
  }

  #apply(record: TranscriptRecord, at: number | null): void {
    switch (record.kind) {
      case "call":
        this.#modelAnswered = true;
        this.#addCall(record);
        return;
      case "output":
        this.#uncounted.delete(record.call_id);
        this.#toCall(record.call_id, record.output, (call) => Object.assign(call, { output: record.output, output_at: at }));
        return;
      case "mcp_end":
        this.#toCall(record.call_id, record.text ?? "", (call) => {
          const { kind: _kind, call_id: _id, ...mcp } = record;
          call.mcp = mcp;
        });
        return;
      case "command_end":
        this.#toCall(record.call_id, record.output, (call) => {
          call.command = { output: record.output, exit_code: record.exit_code, at };
        });
        return;
      case "patch_end":
        this.#toCall(record.call_id, "", (call) => {
          call.patched = true;
        });
        return;
      case "totals":
        this.#modelAnswered = true;
        this.#uncounted.clear();
        this.#addTotal(record.total);
        return;
      case "model_call":
        this.#modelAnswered = true;
        this.#uncounted.clear();
        if (this.#fits(record.response_id)) this.#byRecords.push({ response_id: record.response_id, usage: record.usage });
        return;
      case "answer":
        this.#modelAnswered = true;
        return;
      case "compaction":
        if (this.#fits("")) this.#compactions.push(at);
        return;
      case "task_complete":
        this.#taskComplete = true;
        return;
      case "other":
        return;
      default:
        record satisfies never;
    }
  }

  #addCall({ kind: _kind, ...made }: Extract<TranscriptRecord, { kind: "call" }>): void {
    if (!this.#fits(made.call_id + made.name + made.arguments)) return;
    this.#uncounted.add(made.call_id);
    if (this.#calls.has(made.call_id)) this.#repeated.add(made.call_id);
    else this.#calls.set(made.call_id, { ...made, output: null, output_at: null, mcp: null, command: null, patched: false });
  }

  #toCall(callId: string, kept: string, change: (call: TranscriptCall) => void): void {
    const call = this.#calls.get(callId);
    if (call !== undefined && this.#fits(kept)) change(call);
  }

  /** The same total comes again after a call that failed and after a compaction: those are no model calls. */
  #addTotal(total: TokenCounts): void {
    const before = this.#total ?? { input_tokens: 0, output_tokens: 0, cached_input_tokens: 0, reasoning_output_tokens: 0 };
    this.#total = total;
    const grown = {
      input_tokens: total.input_tokens - before.input_tokens,
      output_tokens: total.output_tokens - before.output_tokens,
      cached_input_tokens: total.cached_input_tokens - before.cached_input_tokens,
      reasoning_output_tokens: total.reasoning_output_tokens - before.reasoning_output_tokens,
    };
    if (Object.values(grown).some((more) => more > 0) && this.#fits("")) this.#byTotals.push(grown);
  }

  #fits(text: string): boolean {
    this.#bytes += text.length + RECORD_OVERHEAD;
    if (this.#bytes <= this.#maxBytes) return true;
    this.#dropped++;
    return false;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // counted by the caller
  }
}
