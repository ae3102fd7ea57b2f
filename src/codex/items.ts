// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import type { ResponseItem } from "../contract/response.ts";
import type { CodexItem } from "./events.ts";
import { CALL_UNAUTHORIZED } from "./profiles/texts.ts";

/** What an item says about the use of a tool, in the words of the response and of the observations. */
export interface ToolUse {
  /** Name of the function call in the response. */
  callName: string;
  /** Name in the observations; the same for an MCP call, which is named by its tool. */
  toolName: string;
  serverName: string | null;
  arguments: unknown;
  output: string;
  failed: boolean;
  /** Why it failed, in one word; null when it did not. */
  errorType: string | null;
}

const text = z.string().catch("");
const commandExecution = z.object({
  command: text,
  aggregated_output: text,
  exit_code: z.number().nullable().catch(null),
});
const mcpToolCall = z.object({
  server: text,
  tool: text,
  arguments: z.unknown().optional(),
  result: z
    .looseObject({ content: z.array(z.unknown()).catch([]) })
    .nullable()
    .catch(null),
  error: z.object({ message: text }).nullable().catch(null),
});
const textBlock = z.object({ type: z.literal("text"), text: z.string() });

/** How an item used a tool; null when it is none of the tools. */
export function toolUseOf(item: CodexItem): ToolUse | null {
  const failed = item["status"] === "failed";
  const plain = (callName: string, toolName: string, args: unknown, output: string): ToolUse => ({
    callName,
    toolName,
    serverName: null,
    arguments: args,
    output,
    failed,
    errorType: failed ? "tool_error" : null,
  });
  switch (item.type) {
    case "command_execution": {
      const { command, aggregated_output, exit_code } = commandExecution.parse(item);
      const use = plain("exec_command", "exec_command", { cmd: command }, commandOutput(aggregated_output, exit_code));
      return failed && exit_code !== null && exit_code !== 0 ? { ...use, errorType: "exit_code" } : use;
    }
    case "mcp_tool_call": {
      const call = mcpToolCall.parse(item);
      const use = plain(call.tool, call.tool, call.arguments ?? {}, mcpOutput(call));
      return { ...use, serverName: call.server, errorType: failed ? mcpErrorType(call.error?.message) : null };
    }
    case "file_change":
      return plain("apply_patch", "apply_patch", { changes: item["changes"] ?? [] }, text.parse(item["status"]));
    case "web_search":
      return plain("web_search", item.type, { query: text.parse(item["query"]) }, "");
    case "todo_list":
      return plain("update_plan", item.type, { items: item["items"] ?? [] }, "");
    default:
      return null;
  }
}

const spawn = z.object({ type: z.literal("collab_tool_call"), tool: z.literal("spawn_agent"), receiver_thread_ids: z.array(z.string()) });

/** The threads that an item says were spawned; agents of the second kind have no such item (0.144.4 and 0.171.0). */
export function spawnedBy(item: CodexItem): string[] {
  return spawn.safeParse(item).data?.receiver_thread_ids ?? [];
}

/** A command's output as the response shows it. */
export function commandOutput(output: string, exitCode: number | null): string {
  return exitCode === null || exitCode === 0 ? output : `${output}\n[exit code: ${exitCode}]`;
}

/** The Responses items of a Codex item. `incomplete`: the turn ended before the item did. Unknown types give none. */
export function responseItems(item: CodexItem, id: string, incomplete: boolean): ResponseItem[] {
  const done = incomplete ? "incomplete" : "completed";
  if (item.type === "agent_message") {
    const content = [{ type: "output_text" as const, text: text.parse(item["text"]), annotations: [] }];
    return [{ type: "message", id, role: "assistant", status: done, content }];
  }
  if (item.type === "reasoning") return [{ type: "reasoning", id, summary: [{ type: "summary_text", text: text.parse(item["text"]) }] }];
  const use = toolUseOf(item);
  if (use === null) return [];
  const call = { id, call_id: id, name: use.callName, arguments: JSON.stringify(use.arguments) };
  return [
    { type: "function_call", ...call, status: use.failed ? "incomplete" : done },
    { type: "function_call_output", id: `${id}_output`, call_id: id, output: use.output, status: done },
  ];
}

function mcpOutput({ error, result }: z.infer<typeof mcpToolCall>): string {
  if (error !== null) return `error: ${error.message}`;
  if (result === null) return "";
  const blocks = result.content.flatMap((block) => textBlock.safeParse(block).data ?? []);
  return blocks.length > 0 ? blocks.map((block) => block.text).join("\n") : JSON.stringify(result);
}

/** Codex's own words for a call that never got an answer (0.144.4 and 0.171.0). */
export function mcpErrorType(message: string | undefined): string {
  if (message === undefined) return "tool_error";
  if (/timed out awaiting tools\/call/.test(message)) return "timeout";
  if (CALL_UNAUTHORIZED.test(message)) return "unauthorized";
  return /user cancelled MCP tool call/.test(message) ? "tools_denied" : "call_failed";
}
