// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import type { ResponseItem } from "../contract/response.ts";

/** What one agent of a session did; the calls' ids are those of the items. */
export interface AgentCalls {
  items: readonly ResponseItem[];
  toolCalls: readonly ToolCallRecord[];
}

/**
 * The paths of the last successful call of a tool in `requiredTools` that any agent of the session made, e.g. finish {reason, paths};
 * [] without one. A text in
 * the place of the list is read as the tools themselves read it: a JSON list, or one bare name.
 */
export function handedInPaths(agents: readonly AgentCalls[], requiredTools: readonly string[]): string[] {
  const handedIn = agents.flatMap(({ items, toolCalls }) => {
    const ends = new Map(toolCalls.map((call) => [call.tool_call_id, Date.parse(call.completed_at ?? "") || 0]));
    return items.flatMap((item) => (isHandIn(item, requiredTools) ? [{ at: ends.get(item.call_id) ?? 0, text: item.arguments }] : []));
  });
  const last = handedIn.toSorted((one, other) => one.at - other.at).at(-1); // stable: those of one instant keep their order
  return last === undefined ? [] : pathsOf(parsed(last.text));
}

/** The arguments of the last successful call of one of the tools; null without one, or when they are no JSON. Pure. */
export function lastHandIn(items: readonly ResponseItem[], tools: readonly string[]): unknown {
  const call = items.findLast((item) => isHandIn(item, tools));
  return call === undefined ? null : parsed(call.arguments);
}

function isHandIn(item: ResponseItem, tools: readonly string[]): item is Extract<ResponseItem, { type: "function_call" }> {
  return item.type === "function_call" && item.status === "completed" && tools.includes(item.name);
}

function pathsOf(call: unknown): string[] {
  const paths = call !== null && typeof call === "object" && "paths" in call ? call.paths : [];
  if (typeof paths === "string") {
    const list = parsed(paths);
    return Array.isArray(list) ? strings(list) : paths === "" ? [] : [paths];
  }
  return Array.isArray(paths) ? strings(paths) : [];
}

function strings(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === "string");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
