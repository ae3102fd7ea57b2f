// SPDX-License-Identifier: Apache-2.0
import { open, stat } from "node:fs/promises";
import { hasErrno } from "../errors.ts";
import { decodeLine, readLines } from "./lines.ts";

/** Longest line read back from a file of ours: a result with its whole response and observations. */
export const MAX_RESULT_LINE_BYTES = 256 * 1024 * 1024;

export interface JsonLinesFile {
  /** Bytes of a torn last line (a crash in mid-write) that were cut off on opening. */
  readonly cutBytes: number;
  /** Lines that are no JSON, e.g. after an edit by hand. */
  readonly badLines: readonly number[];
  /** One line each; durable when it resolves. Calls may overlap: lines never mix, and waiting ones share one fsync. */
  append(values: readonly unknown[]): Promise<void>;
  close(): Promise<void>;
}

/** Opens, or makes, a file of JSON lines for appending. `visit` sees each value that is there. */
export async function openJsonLines(path: string, visit: (value: unknown) => void): Promise<JsonLinesFile> {
  const { end, badLines } = await scan(path, visit);
  const file = await open(path, "a", 0o644);
  const { size } = await file.stat();
  if (size > end) {
    await file.truncate(end);
    await file.datasync();
  }
  let waiting: { text: string; done: () => void; failed: (error: unknown) => void }[] = [];
  let writing: Promise<void> | null = null;

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await file.appendFile(batch.map(({ text }) => text).join(""));
        await file.datasync();
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    writing = null;
  }

  return {
    cutBytes: size - end,
    badLines,
    append(values) {
      if (values.length === 0) return Promise.resolve();
      const text = values.map((value) => `${JSON.stringify(value)}\n`).join("");
      return new Promise((done, failed) => {
        waiting.push({ text, done, failed });
        writing ??= drain();
      });
    },
    async close() {
      await writing;
      await file.close();
    },
  };
}

/** Visits each complete line; answers where the last complete one ends. A file that is not there has none. */
async function scan(path: string, visit: (value: unknown) => void): Promise<{ end: number; badLines: number[] }> {
  const badLines: number[] = [];
  let end = 0;
  try {
    await stat(path);
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return { end, badLines };
    throw error;
  }
  for await (const line of readLines(path, MAX_RESULT_LINE_BYTES)) {
    if (!line.ended) break;
    end = line.offset + line.length + 1;
    const text = line.tooLong ? null : decodeLine(line.bytes);
    if (text === "") continue;
    let value: unknown;
    try {
      if (text === null) throw new Error("not text");
      value = JSON.parse(text);
    } catch {
      badLines.push(line.number);
      continue;
    }
    visit(value);
  }
  return { end, badLines };
}
