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
  /** Codex's thread id (header session-id); null from other clients. */
  thread_id: string | null;
  headers: IncomingHttpHeaders;
  body: ModelRequestBody;
  /** Text of the last message of the user. */
  prompt: string;
  /** How many replies of the model Codex already holds = the script's next step. */
  step: number;
  /** True for Codex's own request to sum up a conversation that grew too long. */
  compaction: boolean;
  /** Where Codex says it works; null when it does not say. */
  workdir: string | null;
  /** The text of the newest user message that holds a SCRIPT: line, else the prompt. */
  script_text: string;
}

/** Null when the body is not a request of the Responses API. Pure. */
export function readModelRequest(path: string, headers: IncomingHttpHeaders, body: unknown): ModelRequest | null {
  const parsed = bodySchema.safeParse(body);
  if (!parsed.success) return null;
  const { input } = parsed.data;
  const userTexts = input.filter((item) => item["role"] === "user").map(textOf);
  const prompt = userTexts.at(-1) ?? "";
  const captureKey = /^\/ng-rollout\/([^/]+)\//.exec(path)?.[1];
  return {
    path,
    capture_key: captureKey === undefined ? null : decodeURIComponent(captureKey),
    attempt: Number(/-a(\d+)$/.exec(captureKey ?? "")?.[1] ?? 0),
    thread_id: [headers["session-id"] ?? headers["session_id"] ?? null].flat()[0] ?? null,
    headers,
    body: parsed.data,
    prompt,
    step: repliesIn(input),
    compaction: prompt.includes("CONTEXT CHECKPOINT COMPACTION"),
    workdir: userTexts.map((text) => /<cwd>(.+?)<\/cwd>/.exec(text)?.[1]).find((cwd) => cwd !== undefined) ?? null,
    script_text: userTexts.findLast((text) => /^SCRIPT: /m.test(text)) ?? prompt,
  };
}

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

function textOf(item: ModelRequestBody["input"][number]): string {
  const content = item["content"];
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: { text?: unknown } | null) => (typeof part?.text === "string" ? part.text : "")).join("");
}
