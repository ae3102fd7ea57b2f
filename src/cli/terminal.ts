// SPDX-License-Identifier: Apache-2.0
import { createWriteStream, type WriteStream } from "node:fs";
import { printable } from "../printable.ts";
import type { LineSink } from "../rollout/progress.ts";

/** stderr for people, until the terminal goes away; then a log file. */
export interface Terminal extends LineSink {
  /** From now on into this file, with the time before each line; also what was meant for stdout. */
  redirect(path: string): void;
  /** stdout: results of the command. */
  data(text: string): void;
}

export function openTerminal(): Terminal {
  let log: WriteStream | null = null;
  let drawn = false;
  // A terminal that is gone answers writes with EIO; a closed pipe with EPIPE. Neither may end a batch.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

  function clear(): void {
    if (drawn) process.stderr.write("\r\u001b[K");
    drawn = false;
  }

  function line(raw: string): void {
    const text = printable(raw);
    if (log !== null) {
      log.write(`${new Date().toISOString()} ${text}\n`);
      return;
    }
    clear();
    process.stderr.write(`${text}\n`);
  }

  return {
    get live() {
      return log === null && process.stderr.isTTY;
    },
    line,
    redraw(text) {
      process.stderr.write(`\r\u001b[K${printable(text).slice(0, Math.max(20, process.stderr.columns - 1))}`);
      drawn = true;
    },
    redirect(path) {
      log ??= createWriteStream(path, { flags: "a" });
      log.on("error", () => undefined);
    },
    data(text) {
      if (log !== null) return line(text);
      clear();
      process.stdout.write(`${printable(text)}\n`);
    },
  };
}
