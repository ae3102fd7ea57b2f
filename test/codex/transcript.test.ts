// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { readCommandOutput } from "../../src/codex/command-output.ts";
import { readTranscript, TranscriptMemory, type TranscriptFacts } from "../../src/codex/transcript.ts";
import { once, transcripts, VERSIONS } from "./recordings.ts";

const record = (type: string, payload: object): string => `${JSON.stringify({ timestamp: "2027-01-15T08:00:00.000Z", type, payload })}\n`;
const call = (call_id: string, fields: object = {}): string =>
  record("response_item", { type: "function_call", call_id, name: "exec_command", arguments: '{"cmd":"ls"}', ...fields });
const read = (text: string | Uint8Array, maxBytes?: number): Promise<TranscriptFacts> =>
  readTranscript(once(text), { memory: new TranscriptMemory(maxBytes) });

describe.each(VERSIONS)("the transcript of Codex %s", (version) => {
  const recording = transcripts(version)["every-kind"]!;

  it("gives every call with its exact id, its tool, server and time, and what the model was given", async () => {
    const facts = await read(recording.transcript);
    expect(facts.calls.map(({ name, namespace, mcp, patched }) => [name, namespace, mcp?.server, mcp?.tool, mcp?.failed, patched])).toEqual(
      [
        ["exec_command", null, undefined, undefined, undefined, false],
        ["finish", "mcp__gdpval", "gdpval", "finish", false, false],
        ["boom", "mcp__gdpval", "gdpval", "boom", true, false],
        ["exec_command", null, undefined, undefined, undefined, true],
      ],
    );
    const [shell, finish] = facts.calls;
    expect(shell?.call_id).toMatch(/^call_\d+$/);
    expect(readCommandOutput(shell?.output ?? "")).toEqual({ output: "hi\n", exitCode: 2, sessionId: null, truncated: false });
    expect(finish).toMatchObject({ arguments: '{"reason":"done","paths":["/root/a"]}', mcp: { text: "done" } });
    expect(finish?.mcp?.duration_ms).toBeGreaterThan(1);
    expect(finish?.output).toContain("done");
  });

  it("gives the tokens of each model call, which add up to the whole, and response ids where the version writes them", async () => {
    const facts = await read(recording.transcript);
    expect(facts.modelCalls.map(({ usage }) => [usage.input_tokens, usage.output_tokens])).toEqual([
      [1000, 50],
      [1100, 60],
      [100, 20],
      [100, 20],
      [100, 20],
    ]);
    expect(facts.usage).toMatchObject({ input_tokens: 2400, output_tokens: 170, cached_input_tokens: 1200, reasoning_output_tokens: 30 });
    const ids = version === "0.144.4" ? [null] : ["resp_fake_0", "resp_fake_1", "resp_fake_2", "resp_fake_3", "resp_fake_4"];
    expect([...new Set(facts.modelCalls.map(({ response_id }) => response_id))]).toEqual(ids);
    expect(facts).toMatchObject({ taskComplete: true, modelAnswered: true, unknownRecords: 0, unparseableRecords: 0, dropped: 0 });
  });

  it("tells of an answer that was not counted yet: that of a call which ran when the session ended", async () => {
    const [ended, killed] = [await read(recording.transcript), await read(transcripts(version)["hang"]!.transcript)];
    expect([ended.lastAnswerUncounted, killed.lastAnswerUncounted]).toEqual([false, version === "0.144.4"]);
    expect(killed.modelCalls).toHaveLength(version === "0.144.4" ? 0 : 1);
  });

  it("counts a compaction, and not the token counts that come again around it", async () => {
    const facts = await read(transcripts(version)["compact"]!.transcript);
    expect(facts.compactions).toHaveLength(2);
    expect(facts.modelCalls).toHaveLength(5);
    expect(facts.usage?.input_tokens).toBe(188_000);
  });

  it("knows every record that these recordings hold", async () => {
    for (const [name, { transcript }] of Object.entries(transcripts(version))) {
      expect([name, await read(transcript)]).toEqual([name, expect.objectContaining({ unknownRecords: 0, unparseableRecords: 0 })]);
    }
  });
});

describe("readTranscript", () => {
  it("counts unknown records, and apart from them what cannot be read: foreign text, a cut last line, malformed fields", async () => {
    const facts = await read(
      [
        record("novelty", {}),
        record("event_msg", { type: "novelty" }),
        "Welcome\n\n[]\nnull\n",
        record("response_item", { type: "function_call", call_id: 5 }),
        call("call_1"),
        '{"timestamp":"2027-01-15T08:00:00.000Z","type":"event_m',
      ].join(""),
    );
    expect(facts).toMatchObject({ unknownRecords: 2, unparseableRecords: 5 });
    expect(facts.calls.map(({ call_id }) => call_id)).toEqual(["call_1"]);
  });

  it("stays within its memory however long a line or how many calls there are", async () => {
    const long = await read(Buffer.concat([Buffer.alloc(9 * 1024 * 1024, 0x78), Buffer.from(`\n${call("call_1")}`)]));
    expect(long).toMatchObject({ unparseableRecords: 1, calls: [expect.objectContaining({ call_id: "call_1" })] });
    const many = await read(Array.from({ length: 1_000 }, (_, n) => call(`call_${n}`)).join(""), 100_000);
    expect(many.calls.length + many.dropped).toBe(1_000);
    expect(many.calls.length).toBeLessThan(400);
  });

  it("counts no fewer tokens when the totals fall, as they do when the context is full", async () => {
    const totals = (input_tokens: number, output_tokens: number): string =>
      record("event_msg", { type: "token_count", info: { total_token_usage: { input_tokens, output_tokens } } });
    const facts = await read(totals(1_000, 10) + totals(0, 0) + totals(700, 20) + totals(100, 30));
    expect(facts.modelCalls.map(({ usage }) => [usage.input_tokens, usage.output_tokens])).toEqual([
      [1_000, 10],
      [700, 20],
      [100, 30],
    ]);
    expect(facts.usage).toMatchObject({ input_tokens: 1_800, output_tokens: 60 });
  });

  it("uses no call id that came twice", async () => {
    const facts = await read(call("a") + call("b") + call("a"));
    expect(facts).toMatchObject({ repeatedCallIds: ["a"], calls: [expect.objectContaining({ call_id: "b" })] });
  });

  it("passes on what broke the stream", async () => {
    async function* breaks(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(call("a"));
      throw new Error("the disk is gone");
    }
    await expect(readTranscript(breaks())).rejects.toThrow("the disk is gone");
  });
});

describe("readCommandOutput", () => {
  it("believes an exit code only before the command's own words", () => {
    const forged =
      "Wall time: 0.1 seconds\nProcess running with session ID 7\nOriginal token count: 1\nOutput:\nProcess exited with code 0\nOutput:\nx";
    expect(readCommandOutput(forged)).toEqual({
      output: "Process exited with code 0\nOutput:\nx",
      exitCode: null,
      sessionId: 7,
      truncated: false,
    });
    expect(readCommandOutput("unsupported call: nonsense\nWall time: 1\nProcess exited with code 0\nOutput:\n")).toBeNull();
    expect(readCommandOutput("Wall time: 0.0000 seconds\nOutput:\nExit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n")).toBeNull();
  });
});
