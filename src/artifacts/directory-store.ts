// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, opendir, readFile, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Attempt } from "../contract/result.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { onDisk } from "../host/disk-full.ts";
import { createOnly } from "../host/files.ts";
import { endsAndAttempts, newStoreText, readAttempt, storeIdIn, type Documents } from "./documents.ts";
import { activationPath, artifactPath, attemptNumbers, inputPath, isActivationId, resultPath, STORE_FILE, withheldPath } from "./layout.ts";
import { measuredFile, withSha256 } from "./measured.ts";
import { openInside } from "./open-inside.ts";
import type { ArtifactStore } from "./types.ts";
import { writeArtifact } from "./write-artifact.ts";

/**
 * The `dir:` store: a directory, local or shared by all workers; what is where: {@link STORE_FILE}.
 *
 * Ends are created by link(2): whoever comes second reads what stands. Deliverables, results and attempts are 0644 (the
 * umask narrows it); evidence and quarantined files are 0600, because redaction of free text has known limits.
 * Throws "store_unwritable" when nothing can be written under `root`, "store_damaged" when its files are not ours; what writes
 * throws "disk_full" when there is no room, and leaves nothing torn.
 */
export async function openDirectoryStore(root: string): Promise<ArtifactStore> {
  const files = documentsIn(root);
  const id = await storeId(root, files);
  return {
    id,
    directory: root,
    ...endsAndAttempts(files),
    async put(activationId, attempt, path, body, { kind, source, quarantined }) {
      const place = artifactPath(activationId, attempt, path);
      const mode = kind === "evidence" || quarantined ? 0o600 : 0o644;
      const written = await onDisk(root, () => writeArtifact(join(root, place), body, mode));
      return { path, uri: uriOf(place), source, kind, quarantined, ...written };
    },
    open: (activationId, attempt, path, range) => createReadStream(join(root, artifactPath(activationId, attempt, path)), { ...range }),
    async size(activationId, attempt, path) {
      const place = artifactPath(activationId, attempt, path);
      // What could be a link leads out of the store.
      const opened = await openInside(await realpath(root), place);
      if ("why" in opened) return null;
      await opened.file.close();
      return opened.bytes;
    },
    async putInput(sha256, body) {
      const target = join(root, inputPath(sha256));
      if (await exists(target)) {
        body.destroy();
        return;
      }
      const coming = `${target}.${randomUUID()}`;
      await writeArtifact(coming, withSha256(body, sha256), 0o644);
      await rename(coming, target); // two at once write the same
    },
    openInput: (sha256) => createReadStream(join(root, inputPath(sha256))),
    hasInput: (sha256) => exists(join(root, inputPath(sha256))),
    async find(activationId, attempt, path, facts) {
      const place = artifactPath(activationId, attempt, path);
      const there = await measuredFile(createReadStream(join(root, place)));
      return there === null ? null : { path, uri: uriOf(place), ...facts, ...there };
    },
    async withhold(activationId, attempt, path) {
      const withheld = withheldPath(path);
      const place = artifactPath(activationId, attempt, withheld);
      await mkdir(dirname(join(root, place)), { recursive: true, mode: 0o700 });
      await rename(join(root, artifactPath(activationId, attempt, path)), join(root, place));
      return { path: withheld, uri: uriOf(place) };
    },
    attemptNumbers: async (activationId) => attemptNumbers(await namesIn(join(root, activationPath(activationId)))),
    async readAttempts(activationId) {
      const attempts: Attempt[] = [];
      for (const number of attemptNumbers(await namesIn(join(root, activationPath(activationId))))) {
        const attempt = await readAttempt(files, activationId, number);
        if (attempt !== null) attempts.push(attempt); // else it was killed before it could say how it ended
      }
      return attempts;
    },
    async *listEnded() {
      for await (const entry of await opendir(root)) {
        if (entry.isDirectory() && isActivationId(entry.name) && (await exists(join(root, resultPath(entry.name))))) yield entry.name;
      }
    },
  };
}

function documentsIn(root: string): Documents {
  const read = async (path: string): Promise<string | null> => {
    try {
      return await readFile(join(root, path), "utf8");
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return null;
      throw error;
    }
  };
  return {
    read,
    async create(path, text) {
      return onDisk(root, async () => {
        await mkdir(dirname(join(root, path)), { recursive: true });
        return createOnly(join(root, path), text);
      });
    },
    async remove(path, text) {
      if ((await read(path)) === text) await rm(join(root, path), { force: true });
    },
    nameOf: (path) => join(root, path),
    addressOf: (path) => pathToFileURL(join(root, path)).href,
  };
}

/** Relative to the store, because output directories get moved and published. */
function uriOf(place: string): string {
  return `dir:${place.split("/").map(encodeURIComponent).join("/")}`;
}

/** Reads the store's id, or gives a new store one. Always writes something, so that a full or read-only disk shows here. */
async function storeId(root: string, files: Documents): Promise<string> {
  try {
    await files.create(STORE_FILE, newStoreText());
  } catch (error) {
    throw new RollcallError(
      "store_unwritable",
      `cannot write to the artifact directory ${root}: ${messageOf(error)}. Choose another, or make it writable for this user`,
      { cause: error },
    );
  }
  return storeIdIn(await files.read(STORE_FILE), files);
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return [];
    throw error;
  }
}

async function exists(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch {
    return false;
  }
}
