// SPDX-License-Identifier: Apache-2.0
import type { Response, Usage } from "../contract/response.ts";
import type { ActivationResult } from "../contract/result.ts";
import type { Protocol } from "./server.ts";

type Item = Response["output"][number];

/**
 * The Responses object that /verify gets: the one of the result. One that was stopped before it had any is told as an incomplete
 * one without output: what the session left in files is scored all the same. Pure.
 */
export function responseFor(protocol: Protocol, result: ActivationResult): object {
  const response = result.response ?? withoutOutput(result);
  const output = protocol === "row" ? asAgentsTellIt(response.output) : response.output;
  return { ...response, output, usage: response.usage === null ? null : usageAsSpecified(response.usage) };
}

/**
 * Readers of the Responses API ask for the details, as numbers: what Codex did not report is 0 here, and null in the result. Writes
 * to the cache are a detail that not every reader knows, and are there where there were some.
 */
function usageAsSpecified(usage: Usage): object {
  const {
    input_tokens,
    output_tokens,
    total_tokens,
    cached_input_tokens,
    reasoning_output_tokens,
    cache_write_input_tokens: written,
  } = usage;
  return {
    input_tokens,
    input_tokens_details: { cached_tokens: cached_input_tokens ?? 0, ...(written == null ? {} : { cache_write_tokens: written }) },
    output_tokens,
    output_tokens_details: { reasoning_tokens: reasoning_output_tokens ?? 0 },
    total_tokens,
  };
}

function withoutOutput({ ended_at }: ActivationResult): Response {
  return {
    id: "resp_0",
    object: "response",
    created_at: Math.floor(Date.parse(ended_at) / 1_000),
    model: "unknown",
    status: "incomplete",
    error: null,
    incomplete_details: null,
    output: [],
    usage: null,
    metadata: {},
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
  };
}

/** As Gym's Codex agent shapes it without a session: thoughts stand before the message they led to, and there always is a message. */
function asAgentsTellIt(output: readonly Item[]): Item[] {
  const told: Item[] = [];
  let thoughts = "";
  for (const item of output) {
    if (item.type === "reasoning") thoughts += item.summary.map(({ text }) => `<think>\n${text}\n</think>\n\n`).join("");
    else if (item.type === "message" && thoughts !== "") {
      told.push(withThoughts(item, thoughts));
      thoughts = "";
    } else told.push(item);
  }
  const hasMessage = told.some(({ type }) => type === "message");
  return thoughts === "" && hasMessage ? told : [...told, message(thoughts)];
}

function withThoughts(item: Extract<Item, { type: "message" }>, thoughts: string): Item {
  const [first, ...rest] = item.content;
  return first === undefined ? message(thoughts) : { ...item, content: [{ ...first, text: thoughts + first.text }, ...rest] };
}

function message(text: string): Item {
  return {
    type: "message",
    id: "msg_last",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
  };
}
