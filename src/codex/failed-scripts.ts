// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import { toolCallRecord } from "./tool-calls.ts";
import type { TranscriptCall } from "./transcript.ts";

/** The script's own fault, or that of a Codex without its host program. */
const FAILED = /^(?:Script failed\n|failed to spawn code-mode host )/;
/** A script that goes on is waited for by later calls, which name its cell. */
const RUNNING = /^Script running with cell ID (\S+)\n/;

/**
 * The scripts of code mode that failed (0.144.4 and 0.171.0), each as a call of the tool `exec`. No event tells of a script, and one
 * that ran well is no call beside those that it made; but one that threw, or that named no tool there is, would leave no trace. Pure.
 */
export function failedScripts(calls: readonly TranscriptCall[], invocationId: string): ToolCallRecord[] {
  const cells = new Map<string, TranscriptCall>();
  return calls.flatMap((call) => {
    if (call.output === null || call.nested || (call.name !== "exec" && call.name !== "wait")) return [];
    const script = call.name === "exec" ? call : cells.get(cellOf(call.arguments));
    const cell = RUNNING.exec(call.output)?.[1];
    if (cell !== undefined && script !== undefined) cells.set(cell, script);
    if (script === undefined || !FAILED.test(call.output)) return [];
    const use = { toolName: "exec", serverName: null, failed: true, errorType: "script_error" };
    return [toolCallRecord(use, { invocationId, id: script.call_id, startedAt: script.made_at, completedAt: call.output_at })];
  });
}

function cellOf(argumentsJson: string): string {
  return /"cell_id"\s*:\s*"([^"]*)"/.exec(argumentsJson)?.[1] ?? "";
}
