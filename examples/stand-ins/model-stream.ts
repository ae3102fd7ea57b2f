// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { callId, type ModelRequest } from "./model-request.ts";
import type { Item, Usage } from "./script.ts";

/** An event of the streaming Responses API. */
export interface StreamEvent {
  type: string;
  [field: string]: unknown;
}

export const sse = (event: StreamEvent): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

export const newId = (prefix: string): string => `${prefix}_${randomBytes(8).toString("hex")}`;

export function created(id: string, model: string): StreamEvent {
  return { type: "response.created", response: { id, object: "response", status: "in_progress", model, output: [] } };
}

export function completed(id: string, usage: Usage): StreamEvent {
  return { type: "response.completed", response: { id, object: "response", status: "completed", usage: wireUsage(usage) } };
}

export function incomplete(id: string, reason: string, usage: Usage): StreamEvent {
  return {
    type: "response.incomplete",
    response: { id, object: "response", status: "incomplete", incomplete_details: { reason }, usage: wireUsage(usage) },
  };
}

export function failed(id: string, code: string, message: string): StreamEvent {
  return { type: "response.failed", response: { id, object: "response", status: "failed", error: { code, message } } };
}

/** A message that has begun and of which only the first words came. */
export function halfMessage(index: number): StreamEvent[] {
  const id = newId("msg");
  return [added(index, { type: "message", role: "assistant", id, content: [] }), delta(index, id, "I will now")];
}

/** What a model streams for the items of one reply, from output index `first` on. */
export function* itemEvents(items: readonly Item[], request: ModelRequest, first = 0): Generator<StreamEvent> {
  for (const [offset, item] of items.entries()) {
    const index = first + offset;
    const wire = wireItem(item, request);
    if (wire["type"] !== "message") yield added(index, wire);
    else {
      yield added(index, { ...wire, content: [] });
      yield delta(index, String(wire["id"]), "say" in item ? filled(item.say, request) : "");
    }
    yield { type: "response.output_item.done", output_index: index, item: wire };
  }
}

function wireItem(item: Item, request: ModelRequest): Record<string, unknown> {
  if ("say" in item) {
    const text = filled(item.say, request);
    return { type: "message", role: "assistant", id: newId("msg"), content: [{ type: "output_text", text, annotations: [] }] };
  }
  if ("reasoning" in item) {
    return { type: "reasoning", id: newId("rs"), summary: [{ type: "summary_text", text: filled(item.reasoning, request) }] };
  }
  // The longest wait that Codex allows, so that a busy machine does not turn one command into several model calls.
  if ("shell" in item) return functionCall({ name: "exec_command", args: { cmd: item.shell, yield_time_ms: 30_000 } }, request);
  if ("mcp" in item) {
    const { server, tool, args } = item.mcp;
    return functionCall({ name: tool, namespace: namespaceOf(server, request), args }, request);
  }
  if ("custom" in item) {
    const { name, input } = item.custom;
    return { type: "custom_tool_call", id: newId("ctc"), call_id: newCallId(request), name, input: filled(input, request) };
  }
  if ("search" in item) {
    const args = { query: item.search, limit: 8 };
    return { type: "tool_search_call", id: newId("tsc"), call_id: newCallId(request), execution: "client", arguments: args };
  }
  return functionCall(item.call, request);
}

const newCallId = (request: ModelRequest): string => callId(request.step, randomBytes(4).toString("hex"));

function functionCall(
  call: { name: string; namespace?: string | undefined; args: object },
  request: ModelRequest,
): Record<string, unknown> {
  return {
    type: "function_call",
    id: newId("fc"),
    call_id: newCallId(request),
    name: call.name,
    ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
    arguments: JSON.stringify(call.args, (_key, value: unknown) => (typeof value === "string" ? filled(value, request) : value)),
  };
}

/** Codex 0.144.4 offers the server `a-b` as the namespace mcp__a_b. */
function namespaceOf(server: string, request: ModelRequest): string {
  const exact = `mcp__${server}`;
  return request.offered.some((tool) => tool.startsWith(`${exact}.`)) ? exact : exact.replaceAll("-", "_");
}

function filled(text: string, request: ModelRequest): string {
  return text.replaceAll("{{workdir}}", request.workdir ?? ".");
}

function added(index: number, item: Record<string, unknown>): StreamEvent {
  return { type: "response.output_item.added", output_index: index, item };
}

function delta(index: number, itemId: string, text: string): StreamEvent {
  return { type: "response.output_text.delta", output_index: index, item_id: itemId, content_index: 0, delta: text };
}

function wireUsage(usage: Usage): Record<string, unknown> {
  return {
    input_tokens: usage.input_tokens,
    input_tokens_details: { cached_tokens: usage.cached_input_tokens, cache_write_tokens: usage.cache_write_input_tokens },
    output_tokens: usage.output_tokens,
    output_tokens_details: { reasoning_tokens: usage.reasoning_output_tokens },
    total_tokens: usage.input_tokens + usage.output_tokens,
  };
}
