// SPDX-License-Identifier: Apache-2.0
import { constants } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { messageOf, hasErrno } from "../errors.ts";
import { isRow, type Row, type RowProblem } from "./task-row.ts";

/** Largest file that is put into the queue with its activation; larger material belongs on a server or in the image. */
const MAX_INLINE_BYTES = 16 * 1024 * 1024;

/**
 * Replaces `from` (a path on this machine, relative to `baseDir`) in sandbox.files by the file's bytes: workers never
 * read a producer's paths. With `check`, the files are only looked at, so that a whole task file can be checked cheaply.
 */
export async function inlineLocalFiles(raw: Row, baseDir: string, mode: "check" | "read"): Promise<{ raw: Row; problems: RowProblem[] }> {
  const sandbox = raw["sandbox"];
  const files = isRow(sandbox) ? sandbox["files"] : undefined;
  if (!isRow(sandbox) || !Array.isArray(files)) return { raw, problems: [] };
  const problems: RowProblem[] = [];
  const inlined: unknown[] = [];
  let total = 0;
  for (const [index, file] of files.entries()) {
    if (!isRow(file) || !Object.hasOwn(file, "from")) {
      inlined.push(file);
      continue;
    }
    const { from, ...rest } = file;
    const at = `sandbox.files[${index}].from`;
    const bytes = await readLocal(from, baseDir, mode, at);
    if ("problem" in bytes) problems.push(bytes.problem);
    else if ((total += bytes.size) > MAX_INLINE_BYTES) {
      problems.push(fileProblem("file_too_large", at, `the row's local files have over ${MAX_INLINE_BYTES} bytes`, "less in all"));
    }
    const path = rest["path"] ?? (typeof from === "string" ? basename(from) : undefined);
    inlined.push({ ...rest, path, content_base64: "problem" in bytes ? "" : bytes.base64 });
  }
  return { raw: { ...raw, sandbox: { ...sandbox, files: inlined } }, problems };
}

async function readLocal(
  from: unknown,
  baseDir: string,
  mode: "check" | "read",
  at: string,
): Promise<{ base64: string; size: number } | { problem: RowProblem }> {
  if (typeof from !== "string" || from === "" || from.includes("\0")) {
    return { problem: fileProblem("file_source", at, "it is not a path", "a path of a file on this machine") };
  }
  const path = resolve(baseDir, from);
  try {
    const facts = await stat(path);
    if (!facts.isFile()) return { problem: fileProblem("file_missing", at, `${path} is not a regular file`, "a regular file") };
    if (facts.size > MAX_INLINE_BYTES) {
      return { problem: fileProblem("file_too_large", at, `${path} has ${facts.size} bytes`, `at most ${MAX_INLINE_BYTES} bytes`) };
    }
    if (mode === "read") return { base64: (await readFile(path)).toString("base64"), size: facts.size };
    await access(path, constants.R_OK);
    return { base64: "", size: facts.size };
  } catch (error) {
    const reason = hasErrno(error, "ENOENT") ? `there is no file ${path}` : `cannot read ${path}: ${messageOf(error)}`;
    return { problem: fileProblem("file_missing", at, reason, "a file that exists, relative to the task file's directory") };
  }
}

function fileProblem(code: string, path: string, message: string, accepted: string): RowProblem {
  return { code, path, message, accepted };
}
