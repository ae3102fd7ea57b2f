// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import type { ResponseItem } from "../contract/response.ts";
import { failedScripts } from "./failed-scripts.ts";
import { commandOutput, mcpErrorType, type ToolUse } from "./items.ts";
import { knownCommands, type KnownCommand } from "./known-commands.ts";
import { toolCallRecord } from "./tool-calls.ts";
import type { TranscriptCall, TranscriptFacts } from "./transcript.ts";

/** What a subagent did, in the words of the response and of the observations. */
export interface SubagentCalls {
  toolCalls: ToolCallRecord[];
  conversation: ResponseItem[];
}

type Use = Omit<ToolUse, "arguments"> & { arguments: string; startedAt: number | null; completedAt: number | null };

/**
 * The tool calls of a subagent, of which no event tells: those of tool servers, commands, patches and failed scripts, and the
 * conversation with what it said. What Codex refused to run is no call, as in the events. Pure.
 */
export function subagentCalls({ calls, messages }: TranscriptFacts, invocationId: string): SubagentCalls {
  const commands = knownCommands(calls);
  const toolCalls: ToolCallRecord[] = [];
  const conversation: ResponseItem[] = [];
  let said = 0;
  const say = (until: number): void => {
    for (; said < messages.length && messages[said]!.before <= until; said++) {
      const content = [{ type: "output_text" as const, text: messages[said]!.text, annotations: [] }];
      conversation.push({ type: "message", id: `message_${said}`, role: "assistant", status: "completed", content });
    }
  };
  for (const [index, call] of calls.entries()) {
    say(index);
    const use = useOf(call, commands.get(call.call_id));
    if (use === null) continue;
    const record = toolCallRecord(use, { invocationId, id: call.call_id, startedAt: use.startedAt, completedAt: use.completedAt });
    toolCalls.push(record);
    conversation.push(...itemsOf(call.call_id, use, record));
  }
  say(Number.POSITIVE_INFINITY);
  toolCalls.push(...failedScripts(calls, invocationId));
  return { toolCalls, conversation };
}

function itemsOf(call_id: string, use: Use, { status }: ToolCallRecord): ResponseItem[] {
  const { callName: name, arguments: args, output } = use;
  const isOpen = status === "incomplete";
  return [
    { type: "function_call", id: call_id, call_id, name, arguments: args, status: status === "completed" ? "completed" : "incomplete" },
    { type: "function_call_output", id: `${call_id}_output`, call_id, output, status: isOpen ? "incomplete" : "completed" },
  ];
}

function useOf(call: TranscriptCall, command: KnownCommand | undefined): Use | null {
  const open = { failed: false, errorType: null, output: "", startedAt: call.made_at, completedAt: null };
  if (call.mcp !== null) return mcpUse(call, call.mcp);
  if (call.patched) {
    const failed = call.patch_failed;
    const ended = { failed, errorType: failed ? "tool_error" : null, output: failed ? "failed" : "completed", completedAt: call.ended_at };
    return { ...plain("apply_patch", call), ...open, ...ended };
  }
  if (call.namespace?.startsWith("mcp__") === true && call.output === null) {
    return { ...plain(call.name, call), ...open, serverName: call.namespace.slice("mcp__".length) };
  }
  if (call.name !== "exec_command") return null;
  if (command === undefined) return call.output === null ? { ...plain("exec_command", call), ...open } : null;
  if (command.exitCode === null) return { ...plain("exec_command", call), ...open, output: command.output };
  const failed = command.exitCode !== 0;
  return {
    ...plain("exec_command", call),
    failed,
    errorType: failed ? "exit_code" : null,
    output: commandOutput(command.output, command.exitCode),
    startedAt: call.made_at,
    completedAt: command.at,
  };
}

function plain(name: string, call: TranscriptCall): Pick<Use, "callName" | "toolName" | "serverName" | "arguments"> {
  return { callName: name, toolName: name, serverName: null, arguments: call.arguments };
}

function mcpUse(call: TranscriptCall, { server, tool, failed, text, error, duration_ms }: NonNullable<TranscriptCall["mcp"]>): Use {
  const completedAt = call.ended_at ?? call.output_at;
  const startedAt = completedAt === null || duration_ms === null ? call.made_at : completedAt - duration_ms / 1000;
  return {
    callName: tool,
    toolName: tool,
    serverName: server,
    arguments: call.arguments,
    failed,
    errorType: failed ? mcpErrorType(error ?? undefined) : null,
    output: error === null ? (text ?? "") : `error: ${error}`,
    startedAt,
    completedAt,
  };
}
