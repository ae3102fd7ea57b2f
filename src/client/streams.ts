// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { EventSourceParserStream } from "eventsource-parser/stream";
import type { EventReply } from "../api/messages.ts";
import type { RowState, RunRowReply } from "../api/row-lines.ts";
import type { ResultLine } from "../api/routes/runs.ts";
import { RollcallError } from "../errors.ts";
import { ApiError } from "./api-error.ts";
import type { Send } from "./request.ts";

// Streams of the server that go on where they were when the connection is lost.

/** An event, and the id to go on after it. */
export type SessionEvent = EventReply & { id: string };

export interface ResultsOptions {
  /** Go on after the line of this cursor. */
  cursor?: string;
  limit?: number;
  /** Without the results: who ended, and how. */
  bare?: boolean;
  /** Wait for more until all have ended. */
  follow?: boolean;
  signal?: AbortSignal;
}

const AGAIN_MS = 500;
/** So many times in a row a stream may end without anything new in it. */
const MOST_EMPTY = 20;

/** Lines in the order of the ends; one may come more than once. Stopping early closes the connection. */
export async function* resultLines(
  send: Send,
  runId: string,
  { signal, limit, ...query }: ResultsOptions,
): AsyncGenerator<ResultLine, undefined> {
  let left = limit;
  let cursor = query.cursor;
  const more = (): RequestOf => ({ query: { ...query, cursor, ...(left === undefined ? {} : { limit: left }) } });
  for await (const text of resumed(send, "results", { run_id: runId }, more, linesOf, signal)) {
    if (text.trim() === "") continue;
    const line = JSON.parse(text) as ResultLine;
    cursor = line.cursor;
    if (left !== undefined) left -= 1;
    yield line;
    if (left === 0) return undefined;
  }
  return undefined;
}

export interface RowsOptions {
  /** Default: those that ended. */
  state?: RowState;
  /** Of those that ended: go on after this row. */
  cursor?: string;
  limit?: number;
  signal?: AbortSignal;
}

/** One may come more than once, also when the connection is lost on the way. Stopping early closes the connection. */
export async function* runRows(send: Send, runId: string, { signal, ...query }: RowsOptions): AsyncGenerator<RunRowReply, undefined> {
  let cursor = query.cursor;
  for await (const text of resumed(send, "rows", { run_id: runId }, () => ({ query: { ...query, cursor } }), linesOf, signal)) {
    const row = JSON.parse(text) as RunRowReply;
    if (row.state === "ended") cursor = row.cursor;
    yield row;
  }
  return undefined;
}

/** Until the last one, `ended`, or until it has ended and there are no more. Stopping early closes the connection. */
export async function* sessionEvents(
  send: Send,
  id: string,
  { last_event_id, signal }: { last_event_id?: string; signal?: AbortSignal },
): AsyncGenerator<SessionEvent, undefined> {
  let last = last_event_id;
  const more = (): RequestOf => (last === undefined ? {} : { headers: { "last-event-id": last } });
  for await (const { id: eventId = "", data } of resumed(send, "events", { id }, more, eventsOf, signal)) {
    last = eventId;
    const event = { ...(JSON.parse(data) as EventReply), id: eventId };
    yield event;
    if (event.stage === "ended") return undefined;
  }
  return undefined;
}

type RequestOf = { query?: Record<string, string | number | boolean | undefined>; headers?: Record<string, string> };

/** Parts of a stream; a lost connection is made again with what `request` says then. Ends when the server ends it in order. */
async function* resumed<T>(
  send: Send,
  operation: "results" | "rows" | "events",
  params: Record<string, string>,
  request: () => RequestOf,
  partsOf: (body: ReadableStream<Uint8Array>) => AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, undefined> {
  for (let empty = 0; ; empty += 1) {
    const given = signal === undefined ? {} : { signal };
    const { body } = await send(operation, { params, ...request(), ...given });
    if (body === null) return undefined; // 204: nothing more
    try {
      for await (const part of partsOf(body)) {
        empty = 0;
        yield part;
      }
      return undefined;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof RollcallError || !isLost(error) || empty >= MOST_EMPTY) throw error;
    }
    await delay(AGAIN_MS, undefined, given);
  }
}

/** As undici says it when the connection ends within a body. */
function isLost(error: unknown): boolean {
  return error instanceof TypeError && !(error instanceof ApiError);
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  return undefined; // what follows the last line break was cut off
}

function eventsOf(body: ReadableStream<Uint8Array>) {
  return body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()) as unknown as AsyncIterable<{
    id?: string;
    data: string;
  }>;
}
