// SPDX-License-Identifier: Apache-2.0
import { deepStrictEqual, ok } from "node:assert/strict";
import * as fc from "fast-check";
import { z } from "zod";
import { Session, type SessionFacts } from "../../src/codex/session.ts";
import { readStoredEvents, type readStdout, type StdoutRecord } from "../../src/codex/stdout.ts";
import { toolCallRecordSchema } from "../../src/contract/observation.ts";
import { responseItemSchema, usageSchema } from "../../src/contract/response.ts";

/** What is held to the properties; a planted fault takes its place where the search itself is tried. */
export interface Reader {
  readStdout: typeof readStdout;
}

const HEAD_BYTES = 4_096;
const MAX_LINE_BYTES = 600;
const MAX_KEPT_BYTES = 20_000;

const anything = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.jsonValue({ maxDepth: 2 }),
  fc.double(),
);
const itemTypes =
  "agent_message reasoning command_execution file_change mcp_tool_call collab_tool_call web_search todo_list error later".split(" ");
const item = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record(
      {
        id: fc.oneof(fc.constantFrom("item_0", "item_1", "item_2"), anything),
        type: fc.constantFrom(...itemTypes),
        text: anything,
        message: anything,
        server: anything,
        tool: anything,
        arguments: anything,
        result: fc.oneof(
          anything,
          fc.record({ content: fc.array(fc.record({ type: fc.constant("text"), text: anything })), structured_content: anything }),
        ),
        error: fc.oneof(anything, fc.record({ message: anything })),
        status: fc.oneof(fc.constantFrom("in_progress", "completed", "failed", "declined"), anything),
        command: anything,
        aggregated_output: anything,
        exit_code: fc.oneof(fc.integer(), anything),
        changes: fc.oneof(anything, fc.array(fc.record({ path: anything, kind: anything }), { maxLength: 3 })),
        items: anything,
        query: anything,
      },
      { requiredKeys: ["type"] },
    ),
  },
  { weight: 1, arbitrary: anything },
);
const counters = fc.oneof(fc.nat(), anything);
const event = fc.oneof(
  fc.record({ type: fc.constantFrom("item.started", "item.updated", "item.completed"), item }),
  fc.record(
    {
      type: fc.constantFrom("thread.started", "turn.started", "turn.completed", "turn.failed", "error", "later.event", "__proto__"),
      thread_id: anything,
      usage: fc.oneof(
        anything,
        fc.record({ input_tokens: counters, cached_input_tokens: counters, output_tokens: counters, reasoning_output_tokens: counters }),
      ),
      error: fc.oneof(anything, fc.record({ message: anything })),
      message: anything,
    },
    { requiredKeys: ["type"] },
  ),
);
const foreign = fc.oneof(
  fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 0x0a))),
  fc.integer({ min: 1, max: 3_000 }).map((length) => Buffer.alloc(length, '{"type":"é')),
  fc.constantFrom("", " ", "\r", "null", "[]", '"x"', '{"type":', "{}").map((text) => Buffer.from(text)),
);
const json = event.map((one) => Buffer.from(JSON.stringify(one)));
const line = fc.oneof(
  { weight: 5, arbitrary: json },
  { weight: 1, arbitrary: foreign },
  { weight: 1, arbitrary: fc.tuple(json, fc.nat()).map(([bytes, at]) => bytes.subarray(0, at % (bytes.length + 1))) },
);
const chunkSizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 100, max: 70_000 })), {
  minLength: 1,
  maxLength: 6,
});

async function* inChunks(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function collected(records: AsyncIterable<StdoutRecord>): Promise<StdoutRecord[]> {
  const found: StdoutRecord[] = [];
  for await (const record of records) found.push(record);
  return found;
}

const LAST = { type: "turn.failed", error: { message: "the last line" } };

/** Whatever Codex prints and however it is cut into chunks: each line is read once and in order, the last one too, and no more is kept of a line than is allowed. */
export function readsEachLine(reader: Reader) {
  return fc.asyncProperty(fc.array(line, { maxLength: 12 }), fc.boolean(), chunkSizes, async (lines, ended, sizes) => {
    const all = [...lines, Buffer.from(JSON.stringify(LAST))];
    const bytes = Buffer.concat(all.flatMap((one, index) => (index === 0 ? [one] : [Buffer.from("\n"), one])));
    const input = ended ? Buffer.concat([bytes, Buffer.from("\n")]) : bytes;
    const records = await collected(reader.readStdout(inChunks(input, sizes), { maxLineBytes: MAX_LINE_BYTES, now: () => 1 }));
    deepStrictEqual(records.at(-1)?.value, LAST);
    // Bytes that decode to white space only are a blank line.
    const meant = all.filter((one) => one.length > MAX_LINE_BYTES || one.toString().trim() !== "");
    deepStrictEqual(
      records.map((record) => record.bytes),
      meant.map((one) => one.length),
    );
    for (const [index, record] of records.entries()) {
      if (record.kind === "cut") ok(Buffer.byteLength(JSON.stringify(record.value)) < 8 * HEAD_BYTES);
      else ok(meant[index]!.length <= MAX_LINE_BYTES);
    }
  });
}

const factsSchema = z.object({
  items: z.array(responseItemSchema),
  toolCalls: z.array(toolCallRecordSchema),
  usage: usageSchema.nullable(),
});

/** Whatever the events hold: they are folded without an error, to items, calls and usage that are valid, of bounded size. */
export function foldsToValidFacts(reader: Reader) {
  return fc.asyncProperty(fc.array(event, { maxLength: 60 }), chunkSizes, async (events, sizes) => {
    const bytes = Buffer.from(events.map((one) => `${JSON.stringify(one)}\n`).join(""));
    const session = new Session("key", MAX_KEPT_BYTES);
    for await (const record of reader.readStdout(inChunks(bytes, sizes), { now: () => 1_764_000_000 })) {
      session.apply(record);
      session.facts();
    }
    const facts = session.facts();
    factsSchema.parse(facts);
    deepStrictEqual(session.facts(), facts);
    // Arguments and outputs are JSON in JSON, so what was kept may be escaped once more.
    ok(JSON.stringify({ items: facts.items, toolCalls: facts.toolCalls }).length <= 8 * MAX_KEPT_BYTES);
  });
}

/** Stored events are read as they were live. */
export function storesWhatItRead(reader: Reader) {
  return fc.asyncProperty(fc.array(line, { maxLength: 20 }), chunkSizes, async (lines, sizes) => {
    let time = 1_764_000_000;
    const bytes = Buffer.concat(lines.flatMap((one) => [one, Buffer.from("\n")]));
    const live = await collected(reader.readStdout(inChunks(bytes, sizes), { now: () => (time += 0.25) }));
    const stored = Buffer.from(live.map(({ at, value }) => `${JSON.stringify([at, value])}\n`).join(""));
    const again = await collected(readStoredEvents(inChunks(stored, sizes)));
    deepStrictEqual(again.map(withoutBytes), live.map(withoutBytes));
    deepStrictEqual(factsOf(again), factsOf(live));
  });
}

/** A stored line is longer; through JSON, because a number's -0 is stored as 0. */
function withoutBytes({ bytes: _bytes, ...record }: StdoutRecord): unknown {
  return JSON.parse(JSON.stringify(record));
}

function factsOf(records: readonly StdoutRecord[]): SessionFacts {
  const session = new Session("key");
  for (const record of records) session.apply(record);
  return session.facts();
}
