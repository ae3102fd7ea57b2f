// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { parseActivationBody } from "../../src/gym/activation-body.ts";
import { GymProblem } from "../../src/gym/problem.ts";

const UNSUPPORTED: Record<string, unknown> = {
  max_output_tokens: 5,
  temperature: 0,
  top_p: 1,
  reasoning: {},
  max_tool_calls: 1,
  previous_response_id: "resp_1",
  prompt: {},
  text: {},
  context_management: [],
  conversation: "c",
  moderation: {},
  top_logprobs: 0,
  truncation: "auto",
  include: [],
  service_tier: "auto",
  safety_identifier: "s",
  user: "u",
  store: false,
  stream_options: {},
  prompt_cache_key: "k",
  prompt_cache_retention: "24h",
};

function refusal(body: object): GymProblem {
  try {
    parseActivationBody(body, "m");
  } catch (error) {
    expect(error).toBeInstanceOf(GymProblem);
    return error as GymProblem;
  }
  throw new Error("it was accepted");
}

it.each([
  ...Object.entries(UNSUPPORTED),
  ["seed", 1],
  ["model", "another"],
  ["tools", [{ type: "function", name: "f" }]],
  ["tool_choice", "required"],
  ["parallel_tool_calls", false],
  ["background", true],
  ["stream", true],
  ["metadata", { chat_template_kwargs: "{}" }],
  ["metadata", { extra_body: "{}" }],
  ["metadata", { row: 1 }],
  ["instructions", 5],
])("a body with %s set is refused, with the field in a text", (field, value) => {
  const { status, message } = refusal({ input: "x", [field]: value });
  expect(status).toBe(422);
  expect(message).toContain(field);
});

it("what is null, or says what a session does anyway, changes nothing", () => {
  const plain = parseActivationBody({ input: "x" }, "m");
  expect(plain).toEqual({ input: "x", metadata: {} });
  const nulls = Object.fromEntries(Object.keys(UNSUPPORTED).map((name) => [name, null]));
  const said = { tools: [], tool_choice: "auto", parallel_tool_calls: true, background: false, stream: false, model: "m", metadata: null };
  expect(parseActivationBody({ input: "x", instructions: null, ...nulls, ...said }, "m")).toEqual(plain);
});

it("no model may be named where the session's is Codex's own choice", () => {
  expect(() => parseActivationBody({ input: "x", model: "gpt" }, null)).toThrow(/Codex's own model/);
});
