// SPDX-License-Identifier: Apache-2.0
import { type Call, turnsOf } from "./turns.ts";
import type { Trajectory } from "./trajectory.ts";

interface ChatToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** Messages of OpenAI's chat completions, as far as a session has them. */
type ChatMessage =
  | { role: "user"; content: string }
  | { role: "assistant"; content: string }
  | { role: "assistant"; content: string | null; tool_calls: ChatToolCall[] }
  | { role: "tool"; tool_call_id: string; content: string };

/** A line of openai-chat.jsonl; nothing else is in it, for those who read it refuse what they do not know. */
export interface ChatLine {
  messages: ChatMessage[];
}

/** Every call must be answered in this format. */
const NO_OUTPUT = "[no output was recorded]";

/** The format has no place for thoughts: they are left out. Pure. */
export function chatLine({ prompt, items }: Trajectory): ChatLine {
  const messages: ChatMessage[] = prompt === null ? [] : [{ role: "user", content: prompt }];
  for (const { text, calls } of turnsOf(items)) {
    if (calls.length === 0 && text === "") continue;
    if (calls.length === 0) messages.push({ role: "assistant", content: text });
    else messages.push({ role: "assistant", content: text === "" ? null : text, tool_calls: calls.map(toolCall) });
    for (const { id, output } of calls) messages.push({ role: "tool", tool_call_id: id, content: output ?? NO_OUTPUT });
  }
  return { messages };
}

function toolCall({ id, name, arguments: text }: Call): ChatToolCall {
  return { id, type: "function", function: { name, arguments: text } };
}
