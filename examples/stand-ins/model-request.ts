// SPDX-License-Identifier: Apache-2.0
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";

const bodySchema = z.looseObject({
  model: z.string(),
  input: z.array(z.looseObject({})),
  tools: z.array(z.looseObject({})).default([]),
});
export type ModelRequestBody = z.infer<typeof bodySchema>;

/** One POST to the Responses API, and what the stand-in reads out of it. */
export interface ModelRequest {
  /** The whole path, e.g. /ng-rollout/t1-a2/v1/responses. */
  path: string;
  /** From a path /ng-rollout/<capture_key>/...; null without. */
  capture_key: string | null;
  /** The N of the capture key's `-a<N>`; 0 without. */
  attempt: number;
  /** Codex's thread id: of the session itself, or of an agent that it spawned; null from other clients. */
  thread_id: string | null;
  /** Of a spawned agent: the thread that spawned it; otherwise null. */
  parent_thread_id: string | null;
  headers: IncomingHttpHeaders;
  body: ModelRequestBody;
  /** Names of the tools that the model may call, those of a namespace as "mcp__office.finish"; `functions` is none. */
  offered: string[];
  /** Text of the last message of the user. */
  prompt: string;
  /** How many replies of the model Codex already holds = the script's next step. */
  step: number;
  /** True for Codex's own request to sum up a conversation that grew too long. */
  compaction: boolean;
  /** Where Codex says it works; null when it does not say. */
  workdir: string | null;
  /** The text of the newest message of the user, or to a spawned agent, that holds a SCRIPT: line, else of the last one. */
  script_text: string;
}

/** Null when the body is not a request of the Responses API. Pure. */
export function readModelRequest(path: string, headers: IncomingHttpHeaders, body: unknown): ModelRequest | null {
  const parsed = bodySchema.safeParse(body);
  if (!parsed.success) return null;
  const { input } = parsed.data;
  const userTexts = input.filter((item) => item["role"] === "user").map(textOf);
  const prompt = userTexts.at(-1) ?? "";
  const threadId = header(headers, "thread-id") ?? header(headers, "session-id") ?? header(headers, "session_id");
  const parent = header(headers, "x-codex-parent-thread-id");
  // A spawned agent may be given all that its parent said and did before: what is its own begins with its task.
  const task = parent === null ? -1 : input.findLastIndex((item) => item["type"] === "agent_message" && textOf(item).startsWith(NEW_TASK));
  const told = task === -1 ? userTexts : [textOf(input[task]!)];
  const captureKey = /^\/ng-rollout\/([^/]+)\//.exec(path)?.[1];
  return {
    path,
    capture_key: captureKey === undefined ? null : decodeURIComponent(captureKey),
    attempt: Number(/-a(\d+)$/.exec(captureKey ?? "")?.[1] ?? 0),
    thread_id: threadId,
    parent_thread_id: parent,
    headers,
    body: parsed.data,
    offered: offeredTools(parsed.data),
    prompt,
    step: repliesIn(input.slice(task + 1)),
    compaction: /"request_kind":"compaction"/.test(header(headers, "x-codex-turn-metadata") ?? "") || prompt.includes(COMPACTION),
    workdir: userTexts.map((text) => /<cwd>(.+?)<\/cwd>/.exec(text)?.[1]).find((cwd) => cwd !== undefined) ?? null,
    script_text: told.findLast((text) => /^SCRIPT: /m.test(text)) ?? told.at(-1) ?? "",
  };
}

/** How Codex begins the message by which an agent gets its task (0.144.4 and 0.171.0). */
const NEW_TASK = "Message Type: NEW_TASK";
const COMPACTION = "CONTEXT CHECKPOINT COMPACTION";

/** The id of a call says which step made it: Codex sends calls back whatever it does to other items. */
export const callId = (step: number, unique: string): string => `call_s${step}_${unique}`;

/** In a summary that replaces the conversation: how many steps it stands for. */
export const stepsDone = (step: number): string => `[steps done: ${step}]`;

/**
 * Counts by the newest call, not by items: one reply may hold several items, and a cut reply is repeated. Every reply
 * but the last of a turn has a call, since Codex ends the turn after one without.
 */
function repliesIn(input: ModelRequestBody["input"]): number {
  let replies = 0;
  for (const item of input) {
    const id = item["call_id"];
    const step = typeof id === "string" ? /^call_s(\d+)_/.exec(id)?.[1] : undefined;
    if (step !== undefined) replies = Math.max(replies, Number(step) + 1);
    for (const [, done] of textOf(item).matchAll(/\[steps done: (\d+)\]/g)) replies = Math.max(replies, Number(done));
  }
  return replies;
}

/** From the key `tools`, and from the item that replaces it for models of code mode ("responses lite"). */
function offeredTools({ tools, input }: ModelRequestBody): string[] {
  const items = input.filter((item) => item["type"] === "additional_tools").flatMap((item) => toolsIn(item));
  return [...tools, ...items].flatMap((tool) => {
    const name = nameOf(tool);
    if (tool["type"] !== "namespace") return [name];
    return toolsIn(tool).map((one) => (name === "functions" ? nameOf(one) : `${name}.${nameOf(one)}`));
  });
}

/** A tool without a name of its own is called by its type, e.g. tool_search. */
function nameOf(tool: Record<string, unknown>): string {
  return String(tool["name"] ?? tool["type"]);
}

function toolsIn(holder: Record<string, unknown>): Record<string, unknown>[] {
  return Array.isArray(holder["tools"]) ? (holder["tools"] as Record<string, unknown>[]) : [];
}

function header(headers: IncomingHttpHeaders, name: string): string | null {
  return [headers[name] ?? null].flat()[0] ?? null;
}

/** The task of an agent comes "encrypted", which without OpenAI's servers is as it was sent. */
function textOf(item: ModelRequestBody["input"][number]): string {
  const content = item["content"];
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part: { text?: unknown; encrypted_content?: unknown } | null) => part?.text ?? part?.encrypted_content)
    .filter((text) => typeof text === "string")
    .join("");
}
