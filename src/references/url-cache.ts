// SPDX-License-Identifier: Apache-2.0
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import { download, type DownloadOptions } from "./download.ts";
import type { LocalCopy } from "./reference.ts";

export interface UrlCache {
  /** The file behind a URL, fetched at most once; `sha256`: only this one will do, and a copy of it is used whatever its URL. */
  fetch(url: URL, sha256: string | null, options: DownloadOptions): Promise<LocalCopy>;
}

/** Of a fetch that was killed; a running one is younger. */
const OLD_PART_MS = 24 * 3_600_000;
const PART = "part-";

/**
 * Fetched files under `root`: `files/<sha256>`, and `urls/<sha256 of the URL>` with the file's sha256 (a URL may hold a secret, so
 * it is not kept). Nothing is ever asked again for a URL that is there: whoever wants it newer removes the directory. Several
 * processes may share it.
 */
export async function openUrlCache(root: string): Promise<UrlCache> {
  const [files, urls] = [join(root, "files"), join(root, "urls")];
  for (const path of [files, urls]) await mkdir(path, { recursive: true, mode: 0o700 });
  await removeOldParts(files);

  async function copyOf(sha256: string): Promise<LocalCopy | null> {
    const path = join(files, sha256);
    try {
      return { path, sha256, bytes: (await stat(path)).size };
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return null;
      throw error;
    }
  }

  return {
    async fetch(url, sha256, options) {
      const record = join(urls, createHash("sha256").update(url.href).digest("hex"));
      const known = sha256 ?? (await recorded(record));
      const there = known === null ? null : await copyOf(known);
      if (there !== null) return there;
      const part = join(files, `${PART}${randomUUID()}`);
      const fetched = await download(url, part, options);
      const path = join(files, fetched.sha256);
      await rename(part, path); // two at once write the same
      await replaceFile(record, `${fetched.sha256}\n`, 0o600);
      return { path, ...fetched };
    },
  };
}

async function recorded(path: string): Promise<string | null> {
  try {
    const sha256 = (await readFile(path, "utf8")).trim();
    return /^[0-9a-f]{64}$/.test(sha256) ? sha256 : null;
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return null;
    throw error;
  }
}

async function removeOldParts(directory: string): Promise<void> {
  for await (const { name } of await opendir(directory)) {
    if (!name.startsWith(PART)) continue;
    const path = join(directory, name);
    const found = await stat(path).catch(() => null);
    if (found !== null && Date.now() - found.mtimeMs > OLD_PART_MS) await rm(path, { force: true });
  }
}
