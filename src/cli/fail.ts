// SPDX-License-Identifier: Apache-2.0
import { CommanderError } from "commander";
import { messageOf, RollcallError } from "../errors.ts";
import { printable } from "../printable.ts";
import { EXIT } from "../rollout/exit-code.ts";

/** What to print for something thrown, and the exit code. Pure. */
export function failureOf(thrown: unknown): { text: string | null; exitCode: number } {
  if (thrown instanceof CommanderError) {
    // commander has printed it already; --help and --version are thrown as well.
    return { text: null, exitCode: thrown.exitCode === 0 ? EXIT.ok : EXIT.usage };
  }
  if (thrown instanceof RollcallError) return { text: printable(`rollcall: ${thrown.message}`), exitCode: thrown.exitCode };
  return {
    text: printable(
      `rollcall: internal error: ${messageOf(thrown)}\nResults so far are saved; the same command goes on. \`rollcall doctor\` checks this machine.`,
    ),
    exitCode: EXIT.internal,
  };
}
