// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { JoinedSession } from "../../src/codex/transcript-join.ts";
import type { ToolCallRecord } from "../../src/contract/observation.ts";
import { readTranscript } from "../../src/codex/transcript.ts";
import { factsOf, joinedWith, once, told, transcripts, VERSIONS, type TranscriptRecording, type Version } from "./recordings.ts";

const recorded = (version: Version, name: string): TranscriptRecording => transcripts(version)[name]!;
const changed = (recording: TranscriptRecording, from: string | RegExp, to: string): TranscriptRecording => {
  const transcript = recording.transcript.replace(from, to);
  if (transcript === recording.transcript) throw new Error(`nothing to change: ${String(from)}`);
  return { ...recording, transcript };
};

describe.each(VERSIONS)("events joined with the transcript of Codex %s", (version) => {
  const joined = async ({ stdout, transcript }: TranscriptRecording): Promise<JoinedSession> =>
    joinedWith(version, await factsOf(stdout), transcript);

  it("call each tool call by the model's own call id, in records and in the response alike [R33]", async () => {
    const { facts, disagreements } = await joined(recorded(version, "every-kind"));
    const ids = facts.toolCalls.map(({ tool_call_id }) => tool_call_id);
    const first = version === "0.144.4" ? 3 : 10;
    expect(ids).toEqual([0, 1, 2, 3].map((n) => `call_${first + n}`));
    for (const type of ["function_call", "function_call_output"] as const) {
      expect(facts.items.flatMap((item) => (item.type === type ? [item.call_id] : []))).toEqual(ids);
    }
    expect(facts.toolCalls.map((call) => call.tool_name)).toEqual(["exec_command", "finish", "boom", "apply_patch"]);
    const nameless = (call: ToolCallRecord): object => ({ ...call, tool_call_id: "" });
    const events = await factsOf(recorded(version, "every-kind").stdout);
    expect(facts.toolCalls.map(nameless)).toEqual(events.toolCalls.map(nameless));
    expect(disagreements).toEqual([]);
  });

  it("find the right call though the events of one reply come in another order", async () => {
    const recording = recorded(version, "parallel");
    const { facts, disagreements } = await joined(recording);
    expect(disagreements).toEqual([]);
    const asked = new Map((await readTranscript(once(recording.transcript))).calls.map((call) => [call.call_id, call.arguments]));
    const said = facts.items.flatMap((item) => (item.type === "function_call" ? [[item.arguments, asked.get(item.call_id)]] : []));
    expect(said).toHaveLength(4);
    for (const [event, call] of said) {
      const [shown, wanted] = [event, call].map((json) => JSON.parse(json ?? "null") as { cmd?: string; query?: string });
      if (shown?.cmd === undefined) expect(shown).toEqual(wanted);
      else expect(shown.cmd).toBe(`/bin/sh -lc '${wanted?.cmd}'`);
    }
  });

  it("hold the whole output of a slow command, also where the events lost its beginning", async () => {
    const { facts, disagreements } = await joined(recorded(version, "yielded"));
    expect(told(facts)).toEqual([`call exec_command {"cmd":"/bin/sh -lc 'echo a; sleep 1.2; echo b'"}`, 'output "a\\nb\\n"', "message ok"]);
    expect(disagreements).toEqual([]);
  });

  it("count the tokens of a turn that did not end, and leave those of one that did to the events", async () => {
    const whole = recorded(version, "every-kind");
    const { facts: ended } = await joined(whole);
    const events = await factsOf(whole.stdout);
    expect(ended.usage).toEqual(events.usage);
    const stopped = whole.stdout.split("\n").filter((line) => !line.includes('"turn.completed"'));
    const { facts } = await joined({ ...whole, stdout: stopped.join("\n") });
    expect(facts.usage).toEqual(events.usage);
    const untold = whole.transcript.split("\n").filter((line) => !/"token_(?:usage_record|count)"/.test(line));
    expect((await joinedWith(version, { ...events, usage: null }, untold.join("\n"))).facts.usage).toBe(null);
  });

  it("complete a command whose end the events lost", async () => {
    const whole = recorded(version, "yielded");
    const lines = whole.stdout.split("\n").filter((line) => !(line.includes("item.completed") && line.includes("command_execution")));
    expect(lines.length).toBe(whole.stdout.split("\n").length - 1);
    const { facts, outcomesUnknown, runningCommands } = await joined({ ...whole, stdout: lines.join("\n") });
    expect(facts.toolCalls).toEqual([expect.objectContaining({ status: "completed", error_type: null, completed_at: expect.any(String) })]);
    expect(told(facts)).toContain('output "a\\nb\\n"');
    expect(facts.toolsCalled).toEqual({ exec_command: 1 });
    expect({ outcomesUnknown, runningCommands }).toEqual({ outcomesUnknown: [], runningCommands: [] });
  });

  it("never complete a tool server's call from it: the model can write to the transcript", async () => {
    const whole = recorded(version, "every-kind");
    const lines = whole.stdout.split("\n").filter((line) => !(line.includes("item.completed") && line.includes('"finish"')));
    const { facts } = await joined({ ...whole, stdout: lines.join("\n") });
    expect(facts.toolCalls.find((call) => call.tool_name === "finish")?.status).toBe("incomplete");
    expect(facts.toolsCalled).not.toHaveProperty("finish");
  });

  it("say of a killed session which call's end nobody knows, and that a command was running", async () => {
    const { facts, outcomesUnknown, runningCommands, disagreements } = await joined(recorded(version, "hang"));
    expect(outcomesUnknown).toEqual([facts.toolCalls[0]?.tool_call_id]);
    expect(outcomesUnknown[0]).toMatch(/^call_/);
    expect(runningCommands).toEqual([expect.stringContaining("sleep")]);
    expect(disagreements).toEqual([]);
  });

  it("tell of a command that ended Codex before its first event came, and of no other without one", async () => {
    const recording = recorded(version, "hang");
    const { facts: whole } = await joined(recording);
    const untold = recording.stdout.split("\n").filter((line) => !line.includes("command_execution"));
    const late = await joined({ ...recording, stdout: untold.join("\n") });
    const [{ tool_call_id }] = whole.toolCalls as [ToolCallRecord];
    expect(late.facts.toolCalls).toEqual([{ ...whole.toolCalls[0], started_at: null }]);
    expect(late.facts.items).toMatchObject([
      { type: "function_call", call_id: tool_call_id },
      { call_id: tool_call_id, output: "" },
    ]);
    expect([late.facts.toolStartsMissing, late.outcomesUnknown]).toEqual([[tool_call_id], [tool_call_id]]);
    expect(late.runningCommands).toEqual([expect.stringContaining("sleep")]);
    expect(
      (await joined({ ...recording, stdout: `${untold.join("\n")}\n{"type":"turn.completed","usage":{}}\n` })).facts.toolCalls,
    ).toEqual([]);
  });

  it("supply the response id of every model call, if the version writes them and no call was cut off", async () => {
    const [whole, cut] = [await joined(recorded(version, "every-kind")), await joined(recorded(version, "cut"))];
    expect(whole.joinKeysKnown).toBe(version === "0.171.0");
    const ids = whole.threads[0]?.modelCalls.map(({ response_id }) => response_id) ?? [];
    expect([ids.length, new Set(ids).has(null)]).toEqual([5, version === "0.144.4"]);
    expect(cut.joinKeysKnown).toBe(false);
    expect((await joined(recorded(version, "hang"))).joinKeysKnown).toBe(false);
  });

  it("agree in every recording, calls that Codex refused to run included", async () => {
    for (const [name, recording] of Object.entries(transcripts(version))) {
      expect([name, (await joined(recording)).disagreements]).toEqual([name, []]);
    }
  });

  it("say in what they differ: tokens, calls, outputs, ends", async () => {
    const recording = recorded(version, "every-kind");
    const total = version === "0.144.4" ? /"output_tokens":170/g : /(?<="usage":[^}]*)"output_tokens":50/;
    expect((await joined(changed(recording, total, `"output_tokens":${version === "0.144.4" ? 171 : 51}`))).disagreements).toEqual([
      { what: "usage", counter: "output_tokens", events: 170, transcript: 171 },
    ]);
    expect((await joined(changed(recording, /Output:\\nhi/, "Output:\\nho"))).disagreements).toEqual([
      { what: "output", tool_call_id: expect.stringMatching(/^call_/) },
    ]);
    const noBoom = recording.stdout.split("\n").filter((line) => !line.includes('"boom"'));
    expect((await joined({ ...recording, stdout: noBoom.join("\n") })).disagreements).toEqual([
      { what: "tool_calls", tool: "boom", events: 0, transcript: 1 },
    ]);
    const well = version === "0.144.4" ? ',"isError":true' : '"status":"failed","result"';
    expect((await joined(changed(recording, well, version === "0.144.4" ? "" : '"status":"completed","result"'))).disagreements).toEqual([
      { what: "status", tool_call_id: expect.stringMatching(/^call_/) },
    ]);
  });

  it("are the events alone without one", async () => {
    const events = await factsOf(recorded(version, "hang").stdout);
    expect(await joinedWith(version, events, null)).toMatchObject({
      facts: events,
      threads: [],
      joinKeysKnown: false,
      compactionsKnown: false,
      runningCommands: [expect.any(String)],
      outcomesUnknown: [events.toolCalls[0]?.tool_call_id],
    });
  });
});
