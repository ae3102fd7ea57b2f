// SPDX-License-Identifier: Apache-2.0

/**
 * The one error class of Rollcall. `code` is stable and made for programs; the message says what happened, to which
 * thing, and what to do. It never holds a header value, a key or raw stderr: messages are printed and logged.
 */
export class RollcallError extends Error {
  readonly code: string;
  /** One of the CLI's exit codes; commands use it when the error ends them. */
  readonly exitCode: number;

  constructor(code: string, message: string, options: { cause?: unknown; exitCode?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RollcallError";
    this.code = code;
    this.exitCode = options.exitCode ?? 2;
  }
}

/** The message of anything that was thrown, without its stack. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** True when `thrown` is a Node system error with this code, e.g. "ENOENT". */
export function hasErrno(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === code;
}
