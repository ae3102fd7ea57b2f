// SPDX-License-Identifier: Apache-2.0
import { stringify } from "safe-stable-stringify";
import type { ToolCallRecord } from "../contract/observation.ts";
import type { SessionFacts } from "./session.ts";
import type { TranscriptCall } from "./transcript.ts";

/** Tools that both the events and the transcript show, by one name; null for any other (write_stdin, unknown tools, web_search). */
export function toolOf(call: TranscriptCall): string | null {
  if (call.patched || call.name === "apply_patch") return "apply_patch";
  if (call.mcp !== null) return mcpTool(call.mcp.server, call.mcp.tool);
  if (call.namespace?.startsWith("mcp__") === true) return mcpTool(call.namespace.slice("mcp__".length), call.name);
  return call.name === "exec_command" || call.name === "update_plan" ? call.name : null;
}

function toolOfRecord(record: ToolCallRecord): string {
  if (record.server_name !== undefined) return mcpTool(record.server_name, record.tool_name);
  return record.tool_name === "todo_list" ? "update_plan" : record.tool_name;
}

/** In the namespace that the model sees, Codex writes "_" for "-". */
function mcpTool(server: string, tool: string): string {
  return `mcp ${server.replaceAll("-", "_")} ${tool}`;
}

interface EventCall {
  id: string;
  tool: string;
  args: string;
  begun: number;
}

/**
 * Which call of the transcript each tool item of the events is, by the item's id. The events have no call ids, and with
 * several calls in one reply they come in another order than the model made them (0.144.4 and 0.171.0). The rule: same tool and
 * same arguments, and among equals the first of the events, by their start, is the first of the transcript. What is left is
 * joined by tool and order alone where as many are left on both sides. Pure.
 */
export function matchCalls(facts: SessionFacts, calls: readonly TranscriptCall[]): Map<string, TranscriptCall> {
  const matched = new Map<string, TranscriptCall>();
  const free = new Map<string, TranscriptCall[]>();
  for (const call of calls) {
    const tool = toolOf(call);
    if (tool !== null) listIn(free, tool).push(call);
  }
  const left = new Map<string, EventCall[]>();
  for (const event of eventCalls(facts)) {
    const candidates = free.get(event.tool) ?? [];
    const at = candidates.findIndex((call) => sameArguments(event, call));
    const [call] = at === -1 ? [] : candidates.splice(at, 1);
    if (call === undefined) listIn(left, event.tool).push(event);
    else matched.set(event.id, call);
  }
  for (const [tool, events] of left) {
    const candidates = free.get(tool) ?? [];
    if (candidates.length !== events.length) continue;
    for (const [index, event] of events.entries()) matched.set(event.id, candidates[index]!);
  }
  return matched;
}

function eventCalls({ toolCalls, items }: SessionFacts): EventCall[] {
  const argsOf = new Map(items.flatMap((item) => (item.type === "function_call" ? [[item.call_id, item.arguments] as const] : [])));
  return toolCalls
    .map((record) => ({
      id: record.tool_call_id,
      tool: toolOfRecord(record),
      args: argsOf.get(record.tool_call_id) ?? "",
      begun: Date.parse(record.started_at ?? record.completed_at ?? "") || 0,
    }))
    .sort((one, other) => one.begun - other.begun); // stable: events of one instant keep their order
}

function sameArguments(event: EventCall, call: TranscriptCall): boolean {
  if (event.tool === "exec_command") return sameCommand(field(event.args, "cmd"), field(call.arguments, "cmd"));
  return canonical(event.args) === canonical(call.arguments);
}

/** The event shows the command as Codex runs it, quoted for a shell: `/bin/bash -lc '...'`. */
function sameCommand(run: unknown, asked: unknown): boolean {
  if (typeof run !== "string" || typeof asked !== "string") return false;
  const [whole, inner] = [run, asked].map((text) => text.replace(/['"\\]/g, ""));
  return whole!.endsWith(inner!) && /^\S+ -l?c $/.test(whole!.slice(0, whole!.length - inner!.length));
}

function field(json: string, name: string): unknown {
  const value = parsed(json);
  return value !== null && typeof value === "object" && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function canonical(json: string): string {
  try {
    return stringify(JSON.parse(json)) ?? json;
  } catch {
    return json; // no JSON, or nested deeper than the stack
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

function listIn<T>(lists: Map<string, T[]>, key: string): T[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
