// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { readBody, serveOnLoopback } from "../../examples/stand-ins/loopback.ts";
import { created, sse, type StreamEvent } from "../../examples/stand-ins/model-stream.ts";

/** One item of a reply, in a model's own words: a message, a script of code mode, a function call; or no answer at all. */
export type AgentItem = { say: string } | { js: string } | { namespace?: string; name: string; args: object };
export type AgentReply = AgentItem[] | "hang" | { whenSubAsked: AgentItem[] };

export interface AgentsModel {
  /** For activations; the capture key is passed over. */
  baseUrl: string;
  /** What each agent was served: answered and unanswered requests, tokens of the answered ones. */
  served: Record<"root" | "sub", { answered: number; open: number; tokens: number }>;
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** A subagent's calls are larger, so that a sum tells whose were counted. */
const TOKENS = { root: [1_000, 10], sub: [50_000, 500] } as const;

/** A model for sessions with subagents: the n-th request of the root, and of all its subagents together, gets the n-th reply of its script. */
export async function startAgentsModel(script: Record<"root" | "sub", AgentReply[]>): Promise<AgentsModel> {
  const served: AgentsModel["served"] = { root: { answered: 0, open: 0, tokens: 0 }, sub: { answered: 0, open: 0, tokens: 0 } };
  let subAsked = (): void => undefined;
  const asked = new Promise<void>((resolve) => (subAsked = resolve));
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await readBody(request, MAX_BODY_BYTES);
    const who = request.headers["x-openai-subagent"] === undefined ? "root" : "sub";
    const mine = served[who];
    if (who === "sub") subAsked();
    const reply = script[who][mine.answered + mine.open] ?? [{ say: "Done." }];
    if (reply === "hang") {
      mine.open++;
      return;
    }
    mine.answered++;
    mine.tokens += TOKENS[who][0] + TOKENS[who][1];
    if (!Array.isArray(reply)) await asked;
    answer(response, Array.isArray(reply) ? reply : reply.whenSubAsked, TOKENS[who]);
  };
  const server = await serveOnLoopback((request, response) => {
    serve(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  return { baseUrl: `${server.origin}/ng-rollout/{capture_key}/v1`, served, close: () => server.close() };
}

function answer(response: ServerResponse, reply: AgentItem[], [input_tokens, output_tokens]: readonly [number, number]): void {
  const id = `resp_${randomBytes(8).toString("hex")}`;
  const items = reply.map(wireItem);
  const usage = {
    input_tokens,
    input_tokens_details: { cached_tokens: 100, cache_write_tokens: 30 },
    output_tokens,
    output_tokens_details: { reasoning_tokens: 1 },
    total_tokens: input_tokens + output_tokens,
  };
  const events: StreamEvent[] = [
    created(id, "stand-in"),
    ...items.flatMap((item, index): StreamEvent[] => [
      { type: "response.output_item.added", output_index: index, item },
      { type: "response.output_item.done", output_index: index, item },
    ]),
    { type: "response.completed", response: { id, object: "response", status: "completed", usage } },
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  // With a faster model Codex 0.144.4 loses the end of commands in its events.
  setTimeout(() => response.end(events.map(sse).join("")), 150);
}

function wireItem(item: AgentItem): Record<string, unknown> {
  const unique = randomBytes(4).toString("hex");
  if ("say" in item) {
    return { type: "message", role: "assistant", id: `msg_${unique}`, content: [{ type: "output_text", text: item.say, annotations: [] }] };
  }
  const call_id = `call_${unique}`;
  if ("js" in item) return { type: "custom_tool_call", id: `ctc_${unique}`, call_id, name: "exec", input: item.js, status: "completed" };
  const { args, ...named } = item;
  return { type: "function_call", id: `fc_${unique}`, call_id, ...named, arguments: JSON.stringify(args) };
}
