// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ResponseInputItem } from "openai/resources/responses/responses";
import { describe, expect, it } from "vitest";
import type { ResponseItem, Usage } from "../../src/contract/response.ts";
import { atifTrajectory } from "../../src/export/atif.ts";
import { chatLine } from "../../src/export/openai-chat.ts";
import { responsesLine } from "../../src/export/responses.ts";
import { trajectoryOf, type Trajectory } from "../../src/export/trajectory.ts";
import { madeResult } from "../report/results-of.ts";
import { atifSchema } from "./atif-schema.ts";

const thought = (text: string): ResponseItem => ({ type: "reasoning", id: "r", summary: [{ type: "summary_text", text }] });
const message = (text: string): ResponseItem => ({
  type: "message",
  id: "m",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
});
const call = (call_id: string, args = '{"cmd":"ls"}'): ResponseItem => ({
  type: "function_call",
  id: call_id,
  call_id,
  name: "exec_command",
  arguments: args,
  status: "completed",
});
const output = (call_id: string, text = "out"): ResponseItem => ({
  type: "function_call_output",
  id: call_id,
  call_id,
  output: text,
  status: "completed",
});

function trajectory(conversation: ResponseItem[], prompt: string | null = "Do it."): Trajectory {
  const found = trajectoryOf(madeResult({ id: "act-1", finish: 1, tokens: 50, reward: 0.5, conversation }), prompt);
  if (typeof found === "string") throw new Error(found);
  return found;
}

const SESSION = [
  thought("Look first."),
  message("I list the files."),
  call("call_0"),
  output("call_0", "a.txt"),
  call("c2", "not json"),
  message("Done."),
];

describe("ATIF", () => {
  it("has a step for what a thought, a message or an answered call sets apart, and is what the format's readers accept", () => {
    const written = atifTrajectory(trajectory(SESSION));
    expect(atifSchema.parse(written)).toEqual(written);
    expect(written).toMatchObject({
      schema_version: "ATIF-v1.7",
      agent: { name: "codex", version: "0.144.4", model_name: "gpt-5.5" },
      final_metrics: { total_prompt_tokens: 50, total_completion_tokens: 10, total_steps: 4 },
      extra: { rollcall: { activation_id: "act-1", reward: 0.5, status: "completed", prompt_known: true } },
    });
    expect(written.steps).toMatchObject([
      { step_id: 1, source: "user", message: "Do it." },
      {
        step_id: 2,
        source: "agent",
        message: "I list the files.",
        reasoning_content: "Look first.",
        tool_calls: [
          {
            tool_call_id: "call_0",
            function_name: "exec_command",
            arguments: { cmd: "ls" },
            extra: { status: "completed", server_name: "office" },
          },
        ],
        observation: { results: [{ source_call_id: "call_0", content: "a.txt" }] },
        timestamp: "2026-04-01T10:00:01.000Z",
      },
      { step_id: 3, tool_calls: [{ tool_call_id: "c2", arguments: {}, extra: { arguments_text: "not json" } }] },
      { step_id: 4, message: "Done." },
    ]);
  });

  it("has the tokens of the attempt that it shows, by kind; of records that do not say them by attempt the result's", () => {
    const usage: Usage = {
      input_tokens: 500,
      output_tokens: 100,
      total_tokens: 600,
      cached_input_tokens: 50,
      cache_write_input_tokens: 7,
      reasoning_output_tokens: 20,
    };
    const result = madeResult({ id: "act-1", usages: [usage, usage], conversation: SESSION });
    const metricsOf = (value: unknown) => {
      const found = trajectoryOf(value, null);
      if (typeof found === "string") throw new Error(found);
      return atifSchema.parse(atifTrajectory(found)).final_metrics;
    };
    const shown = {
      total_prompt_tokens: 500,
      total_completion_tokens: 100,
      total_cached_tokens: 50,
      extra: { reasoning_output_tokens: 20, cache_write_input_tokens: 7 },
    };
    expect(result.usage).toMatchObject({ total_tokens: 1_200 });
    expect(metricsOf(result)).toMatchObject(shown);
    const { cache_write_input_tokens: _written, ...older } = usage;
    const attempts = result.attempts.map(({ usage: _usage, ...attempt }) => attempt);
    expect(metricsOf({ ...result, usage: older, attempts })).toMatchObject({ ...shown, extra: { reasoning_output_tokens: 20 } });
    expect(metricsOf({ ...result, attempts: [{ ...result.attempts[1], usage: null }] })).not.toHaveProperty("total_prompt_tokens");
  });

  it("is valid without a prompt, and the check refuses what is wrong", () => {
    const written = atifTrajectory(trajectory([message("Hi.")], null));
    expect(atifSchema.safeParse(written).success).toBe(true);
    expect(written.steps).toEqual([{ step_id: 1, source: "agent", message: "Hi." }]);
    const [step] = written.steps;
    for (const wrong of [
      { ...written, steps: [] },
      { ...written, steps: [{ ...step, step_id: 2 }] },
      { ...written, steps: [{ ...step, source: "user", reasoning_content: "x" }] },
      { ...written, steps: [{ ...step, observation: { results: [{ source_call_id: "nobody's", content: "" }] } }] },
      { ...written, reward: 1 },
    ])
      expect(atifSchema.safeParse(wrong).success).toBe(false);
  });
});

describe("OpenAI chat messages", () => {
  it("are those of a session, as OpenAI's own types have them", () => {
    const messages: ChatCompletionMessageParam[] = chatLine(trajectory(SESSION)).messages;
    const functionOf = (args: string) => ({ name: "exec_command", arguments: args });
    expect(messages).toEqual([
      { role: "user", content: "Do it." },
      {
        role: "assistant",
        content: "I list the files.",
        tool_calls: [{ id: "call_0", type: "function", function: functionOf('{"cmd":"ls"}') }],
      },
      { role: "tool", tool_call_id: "call_0", content: "a.txt" },
      { role: "assistant", content: null, tool_calls: [{ id: "c2", type: "function", function: functionOf("not json") }] },
      { role: "tool", tool_call_id: "c2", content: "[no output was recorded]" },
      { role: "assistant", content: "Done." },
    ]);
  });
});

describe("Responses items", () => {
  it("are a valid input of the Responses API, as OpenAI's own types have it", () => {
    const { input, output: said, rollcall } = responsesLine(trajectory(SESSION));
    const items: ResponseInputItem[] = [...input, ...said];
    expect(items).toEqual([{ type: "message", role: "user", content: [{ type: "input_text", text: "Do it." }] }, ...SESSION]);
    expect(rollcall).toMatchObject({ activation_id: "act-1", task_id: "act-1", reward: 0.5 });
  });
});

describe("every format", () => {
  const id = fc.constantFrom("a", "b", "c", "");
  const item = fc.oneof(
    fc.string().map(thought),
    fc.string().map(message),
    fc.tuple(id, fc.oneof(fc.json(), fc.string())).map(([one, args]) => call(one, args)),
    fc.tuple(id, fc.string()).map(([one, text]) => output(one, text)),
  );

  it("holds for any order of items, repeated ids and lost ends", () => {
    fc.assert(
      fc.property(fc.array(item, { minLength: 1, maxLength: 12 }), (items) => {
        const made = trajectory(items);
        const atif = atifTrajectory(made);
        expect(atifSchema.safeParse(atif).error).toBeUndefined();
        const { messages } = chatLine(made);
        for (const [at, one] of messages.entries()) {
          if (one.role !== "assistant" || !("tool_calls" in one)) continue;
          const answers = messages.slice(at + 1, at + 1 + one.tool_calls.length);
          expect(answers.map((answer) => (answer.role === "tool" ? answer.tool_call_id : null))).toEqual(
            one.tool_calls.map((tool) => tool.id),
          );
        }
        const calls = items.filter(({ type }) => type === "function_call").length;
        expect(atif.steps.flatMap(({ tool_calls = [] }) => tool_calls)).toHaveLength(calls);
        expect(messages.filter(({ role }) => role === "tool")).toHaveLength(calls);
      }),
    );
  });
});
