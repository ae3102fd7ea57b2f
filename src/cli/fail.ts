// SPDX-License-Identifier: Apache-2.0
import { CommanderError } from "commander";
import { messageOf, RollcallError } from "../errors.ts";
import { printable } from "../printable.ts";
import { redisTrouble } from "../redis/trouble.ts";
import { EXIT } from "../rollout/exit-code.ts";

/** What to print for something thrown, and the exit code. Pure. */
export function failureOf(thrown: unknown): { text: string | null; exitCode: number } {
  if (thrown instanceof CommanderError) {
    // commander has printed it already; --help and --version are thrown as well.
    return { text: null, exitCode: thrown.exitCode === 0 ? EXIT.ok : EXIT.usage };
  }
  if (thrown instanceof RollcallError) return { text: printable(`rollcall: ${thrown.message}`), exitCode: thrown.exitCode };
  const trouble = redisTrouble(thrown);
  if (trouble !== null) {
    const text = `rollcall: ${trouble.text}\nWhat ended is saved; once that is put right the same command goes on.`;
    return { text: printable(text), exitCode: EXIT.interrupted };
  }
  const machine = machineTrouble(thrown);
  if (machine !== null) {
    const text = `rollcall: ${machine}\nWhat ended is saved; once that is put right the same command goes on. \`rollcall doctor\` checks this machine.`;
    return { text: printable(text), exitCode: EXIT.interrupted };
  }
  return {
    text: printable(
      `rollcall: internal error: ${messageOf(thrown)}\nResults so far are saved; the same command goes on. \`rollcall doctor\` checks this machine.`,
    ),
    exitCode: EXIT.internal,
  };
}

const MACHINE: Readonly<Record<string, string>> = {
  EACCES: "permission denied: let this user read and write there, or choose another place (--out, HOME, ROLLCALL_STATE_DIR, TMPDIR)",
  EPERM: "not permitted: let this user write there, or choose another place (--out, HOME, ROLLCALL_STATE_DIR, TMPDIR)",
  EROFS: "its file system is read-only: choose another place (--out, HOME, ROLLCALL_STATE_DIR, TMPDIR)",
  ENOSPC: "the disk is full: make room",
  EDQUOT: "this user's disk quota is used up: make room",
  EIO: "the disk does not do what it is told (EIO): see the system's log",
  EMFILE: "too many files are open in this process: raise `ulimit -n`, or use a smaller --concurrency",
  ENFILE: "too many files are open on this machine: raise fs.file-max, or end other programs",
  ENOMEM: "this machine has no memory left: use a smaller --concurrency",
  EAGAIN: "this user may start no more processes: raise `ulimit -u`, or use a smaller --concurrency",
};

/** What a system call was refused for, where that is the machine's or its user's to change. Pure. */
function machineTrouble(thrown: unknown): string | null {
  if (!(thrown instanceof Error)) return null;
  const { code, syscall, path } = thrown as NodeJS.ErrnoException;
  const text = code === undefined || syscall === undefined ? undefined : MACHINE[code];
  return text === undefined ? null : `${path ?? syscall}: ${text} (${code}, ${syscall})`;
}
