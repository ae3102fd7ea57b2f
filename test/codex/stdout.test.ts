// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { Session } from "../../src/codex/session.ts";
import { readStdout, readStoredEvents, type StdoutRecord } from "../../src/codex/stdout.ts";
import { once, recordings, told, VERSIONS } from "./recordings.ts";

const MiB = 1024 * 1024;

async function read(...chunks: (string | Uint8Array)[]): Promise<StdoutRecord[]> {
  const records = [];
  for await (const record of readStdout(once(...chunks), { now: () => 7 })) records.push(record);
  return records;
}

const message = (text: string): string => JSON.stringify({ type: "item.completed", item: { id: "item_1", type: "agent_message", text } });

async function* generated(count: number, chunk: (index: number) => Uint8Array): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index++) yield chunk(index);
}

describe("readStdout", () => {
  it("keeps characters whole that arrive one byte at a time [A9]", async () => {
    const text = "価格 😀 é ‏עברית";
    const bytes = [...Buffer.from(`${message(text)}\n`)].map((byte) => Buffer.of(byte));
    const records = await read(...bytes);
    expect(records).toHaveLength(1);
    expect(records[0]?.value).toEqual(JSON.parse(message(text)));
  });

  it("reads a last line without a newline, and bytes that are NUL [A11]", async () => {
    const records = await read(`${message("one")}\n\0\0{"half\n`, message("two"));
    expect(records.map(({ kind }) => kind)).toEqual(["event", "unparsed", "event"]);
    expect(records[1]?.value).toEqual({ type: "rollcall.unparsed_line", text: '\0\0{"half' });
  });

  it("counts foreign text, keeps unknown objects raw, and never stops [A12]", async () => {
    const lines = ["Welcome!", '{"type":"item.comp', "null", "[]", '"text"', "7", '{"type":5}', '{"type":"novelty","x":[1]}', "{}", ""];
    const records = await read(lines.join("\n"));
    expect(records.map(({ kind }) => kind)).toEqual([...Array.from({ length: 6 }, () => "unparsed"), "unknown", "unknown", "unknown"]);
    expect(records[7]?.value).toEqual({ type: "novelty", x: [1] });
  });

  it("keeps the fields it does not know of an event it knows", async () => {
    const [record] = await read('{"type":"turn.started","novelty":{"deep":[1]}}\n');
    expect(record).toMatchObject({ kind: "event", value: { novelty: { deep: [1] } } });
  });

  it("takes a final message of 1.5 MB whole [A2]", async () => {
    const [record] = await read(message("x".repeat(1.5 * MiB)));
    expect(record).toMatchObject({ kind: "event", event: { item: { text: "x".repeat(1.5 * MiB) } } });
  });

  it("turns a line of 64 MiB into a record of its size, in bounded memory, and reads on [A11]", async () => {
    const chunk = Buffer.alloc(64 * 1024, "x");
    const before = process.memoryUsage().rss;
    let most = 0;
    const kinds: string[] = [];
    async function* stream(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{"type":"item.completed","item":{"type":"agent_message","text":"');
      yield* generated(1024, () => chunk);
      yield Buffer.from(`"}}\n${message("after")}\n`);
    }
    for await (const record of readStdout(stream())) {
      kinds.push(record.kind);
      most = Math.max(most, process.memoryUsage().rss - before);
      if (record.kind === "cut") expect(record.value).toMatchObject({ type: "rollcall.cut_line", bytes: 64 * MiB + 67 });
    }
    expect(kinds).toEqual(["cut", "event"]);
    expect(most).toBeLessThan(48 * MiB);
  });

  it("reads half a million tiny lines, half of them events, in bounded memory [A11]", async () => {
    const tiny = Buffer.from(`{}\n${message("x")}\n`.repeat(1_000));
    const session = new Session("key", 8 * MiB);
    const before = process.memoryUsage().rss;
    for await (const record of readStdout(generated(250, () => tiny))) session.apply(record);
    expect(process.memoryUsage().rss - before).toBeLessThan(160 * MiB);
    const facts = session.facts();
    expect(facts.events).toBe(500_000);
    expect(facts.items.length + facts.eventsDropped).toBe(250_000);
    expect(facts.items.length).toBeLessThan(20_000);
  });
});

describe("readStoredEvents", () => {
  it.each(VERSIONS)("gives the records that were seen live, recordings of %s", async (version) => {
    for (const { stdout } of Object.values(recordings(version, "events"))) {
      const live = new Session("key");
      const stored: string[] = [];
      for await (const record of readStdout(once(`${stdout}foreign text\n`), { now: () => 7.5 })) {
        live.apply(record);
        stored.push(`${JSON.stringify([record.at, record.value])}\n`);
      }
      const replayed = new Session("key");
      for await (const record of readStoredEvents(once(...stored, "[7.5,{"))) replayed.apply(record);
      expect(replayed.facts()).toEqual(live.facts());
      expect(told(replayed.facts()).length).toBe(told(live.facts()).length);
    }
  });
});
