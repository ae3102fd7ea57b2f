// SPDX-License-Identifier: Apache-2.0
import type { Dirent } from "node:fs";
import { opendir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno, messageOf } from "../errors.ts";
import { temporaryWriter } from "../host/files.ts";
import type { Leftover } from "../host/leftover.ts";
import { isActivationId, STORE_FILE } from "./layout.ts";

/** A file is linked into place within moments of its writing; a worker that was stopped in between may go on much later. */
const OLD_MS = 24 * 3_600_000;

/**
 * Halves of documents in a directory store, of workers killed between writing and linking: results and attempts, redacted.
 * Nothing when there is no store of ours. `now`: ms since 1970.
 */
export async function* directoryLeftovers(root: string, now = Date.now()): AsyncGenerator<Leftover> {
  if (!(await stat(join(root, STORE_FILE)).catch(() => null))?.isFile()) return;
  for await (const activation of entriesOf(root)) {
    if (activation.isFile()) yield* halfIn(root, activation.name, now);
    if (!activation.isDirectory() || !isActivationId(activation.name)) continue;
    const place = join(root, activation.name);
    for await (const entry of entriesOf(place)) {
      if (entry.isFile()) yield* halfIn(place, entry.name, now);
      if (!entry.isDirectory() || !/^attempt-\d+$/.test(entry.name)) continue;
      for await (const file of entriesOf(join(place, entry.name)))
        if (file.isFile()) yield* halfIn(join(place, entry.name), file.name, now);
    }
  }
}

async function* halfIn(directory: string, name: string, now: number): AsyncGenerator<Leftover> {
  if (temporaryWriter(name) === undefined) return;
  const what = join(directory, name);
  const facts = await stat(what).catch(() => null);
  if (facts === null || now - facts.mtimeMs < OLD_MS) return;
  yield {
    kind: "temporary_file",
    what,
    why: `half of a file, written ${facts.mtime.toISOString()}`,
    remove: () =>
      rm(what, { force: true }).then(
        () => null,
        (error: unknown) => messageOf(error),
      ),
  };
}

async function* entriesOf(path: string): AsyncGenerator<Dirent> {
  try {
    for await (const entry of await opendir(path)) yield entry;
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error; // removed meanwhile
  }
}
