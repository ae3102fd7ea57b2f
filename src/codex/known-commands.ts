// SPDX-License-Identifier: Apache-2.0
import { readCommandOutput } from "./command-output.ts";
import type { TranscriptCall } from "./transcript.ts";

/** What the end of a command is known to be from the transcript. */
export interface KnownCommand {
  output: string;
  exitCode: number | null;
  truncated: boolean;
  at: number | null;
}

/** What each command wrote and how it ended, by its call_id; write_stdin goes on with the command it names. Pure. */
export function knownCommands(calls: readonly TranscriptCall[]): Map<string, KnownCommand> {
  const known = new Map<string, KnownCommand>();
  const running = new Map<number, KnownCommand>();
  for (const call of calls) {
    const told = call.output === null ? null : readCommandOutput(call.output);
    if (call.name === "exec_command" && !call.patched) {
      const { command } = call;
      if (told === null && command === null) continue;
      const entry: KnownCommand = {
        output: told?.output ?? command?.output ?? "",
        exitCode: told?.exitCode ?? command?.exit_code ?? null,
        truncated: told?.truncated ?? false,
        at: command?.at ?? call.output_at,
      };
      known.set(call.call_id, entry);
      if (told !== null && told.sessionId !== null) running.set(told.sessionId, entry);
    } else if (call.name === "write_stdin" && told !== null) {
      const entry = running.get(sessionOf(call.arguments));
      if (entry === undefined) continue;
      entry.output += told.output;
      entry.truncated ||= told.truncated;
      entry.exitCode ??= told.exitCode;
      entry.at = call.output_at;
    }
  }
  return known;
}

function sessionOf(argumentsJson: string): number {
  return Number(/"session_id"\s*:\s*(\d+)/.exec(argumentsJson)?.[1] ?? Number.NaN);
}
