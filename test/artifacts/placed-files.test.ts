// SPDX-License-Identifier: Apache-2.0
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { filesToPlace, type FileToPlace } from "../../src/artifacts/placed-files.ts";
import type { PlacedFile } from "../../src/contract/activation.ts";

const HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

const NO_INPUTS = { hasInput: () => Promise.resolve(false), openInput: () => Readable.from([]) };

async function placed(files: readonly PlacedFile[]): Promise<FileToPlace[]> {
  const all: FileToPlace[] = [];
  for await (const file of filesToPlace(files, NO_INPUTS)) all.push(file);
  return all;
}

test("files to place become bytes, with the mode they asked for", async () => {
  expect(
    await placed([
      { path: "a.txt", content: "é\0\n", executable: false },
      { path: "bin/run", content_base64: "AP8=", executable: true },
      { path: "empty", content: "", executable: false },
      { path: "checked", content: "hello", sha256: HELLO, executable: false },
    ]),
  ).toEqual([
    { path: "a.txt", bytes: Buffer.from([0xc3, 0xa9, 0, 10]), mode: 0o644 },
    { path: "bin/run", bytes: Buffer.from([0, 255]), mode: 0o755 },
    { path: "empty", bytes: Buffer.alloc(0), mode: 0o644 },
    { path: "checked", bytes: Buffer.from("hello"), mode: 0o644 },
  ]);
});

test.each([
  { path: "x/report.docx", content: "hullo", sha256: HELLO, executable: false },
  { path: "x/report.docx", url: "http://127.0.0.1/x", executable: false },
  { path: "x/report.docx", executable: false },
  { path: "x/report.docx", artifact: `sha256:${HELLO}`, executable: false },
])("a file that cannot be placed is named: %j", async (file) => {
  await expect(placed([file])).rejects.toThrow(
    expect.objectContaining({ code: "file_not_usable", message: expect.stringContaining("x/report.docx") }),
  );
});
