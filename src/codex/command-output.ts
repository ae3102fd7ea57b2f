// SPDX-License-Identifier: Apache-2.0

/** What the model was given for a command, taken apart. */
export interface CommandOutput {
  output: string;
  /** null = it was still running. */
  exitCode: number | null;
  /** By which a later write_stdin continues it; null = it has ended. */
  sessionId: number | null;
  /** Codex left out its middle: not the whole output. */
  truncated: boolean;
}

const HEADER = /^(?:Chunk ID: [^\n]*\n)?Wall time: [^\n]*\n(?:Process exited with code (-?\d+)|Process running with session ID (\d+))\n/;
const OUTPUT = "\nOutput:\n";

/**
 * Reads Codex's text for a command (0.144.4 and 0.171.0): its exit code counts only in the lines before "Output:", since what
 * follows are the command's own words. null when it is no such text, e.g. for a call that Codex refused.
 */
export function readCommandOutput(text: string): CommandOutput | null {
  const header = HEADER.exec(text);
  const at = text.indexOf(OUTPUT);
  if (header === null || at === -1) return null;
  const output = text.slice(at + OUTPUT.length);
  return {
    output,
    exitCode: header[1] === undefined ? null : Number(header[1]),
    sessionId: header[2] === undefined ? null : Number(header[2]),
    truncated: output.startsWith("Warning: truncated output (original token count: "),
  };
}
