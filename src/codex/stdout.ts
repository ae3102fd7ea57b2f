// SPDX-License-Identifier: Apache-2.0
import { parseEvent, type CodexEvent } from "./events.ts";
import { readLines } from "./lines.ts";

/** A line of Codex's stdout, and what to keep of it in events.jsonl. */
export type StdoutRecord = {
  /** Receipt time in Unix seconds; Codex's events carry none. */
  at: number;
  /** The JSON object as Codex wrote it; for other lines an object of ours that holds the line. */
  value: object;
  bytes: number;
} & (
  | { kind: "event"; event: CodexEvent }
  /** A JSON object that is no event we know. */
  | { kind: "unknown" }
  /** Not a JSON object. */
  | { kind: "unparsed" }
  /** Too long: only its first bytes were kept. */
  | { kind: "cut" }
);

/**
 * Longest line read whole. Codex limits a command's output to 1 MiB, but escaping may multiply that, and a final message
 * has no limit.
 */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
const UNPARSED = "rollcall.unparsed_line";
const CUT = "rollcall.cut_line";

/** Reads Codex's stdout live, line by line, in bounded memory. Blank lines are passed over. Rejects with the stream's error. */
export async function* readStdout(
  chunks: AsyncIterable<Uint8Array>,
  { now = () => Date.now() / 1000, maxLineBytes = MAX_LINE_BYTES }: { now?: () => number; maxLineBytes?: number } = {},
): AsyncGenerator<StdoutRecord> {
  for await (const line of readLines(chunks, maxLineBytes)) {
    if (line.kind === "cut") {
      yield recordOf(now(), { type: CUT, bytes: line.bytes, head: line.head }, line.bytes);
    } else if (line.text.trim() !== "") {
      const value = jsonOf(line.text);
      yield recordOf(now(), isObject(value) ? value : { type: UNPARSED, text: line.text }, line.bytes);
    }
  }
}

/** Reads a stored events.jsonl, lines of `[time, value]`: the same records as when it was live. A torn last line is left out. */
export async function* readStoredEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<StdoutRecord> {
  // A stored line is longer than what it came from: a time, and redaction, which may lengthen.
  for await (const line of readLines(chunks, 4 * MAX_LINE_BYTES)) {
    const pair = line.kind === "whole" ? jsonOf(line.text) : null;
    if (Array.isArray(pair) && typeof pair[0] === "number" && isObject(pair[1])) yield recordOf(pair[0], pair[1], line.bytes);
  }
}

function recordOf(at: number, value: object, bytes: number): StdoutRecord {
  const type = "type" in value ? value.type : undefined;
  if (type === UNPARSED) return { kind: "unparsed", at, value, bytes };
  if (type === CUT) return { kind: "cut", at, value, bytes };
  const event = parseEvent(value);
  return event === null ? { kind: "unknown", at, value, bytes } : { kind: "event", at, value, bytes, event };
}

function isObject(value: unknown): value is object {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // foreign text on stdout
  }
}
