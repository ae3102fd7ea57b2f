// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import type { PlacedFile } from "../contract/activation.ts";
import { RollcallError } from "../errors.ts";
import { withSha256 } from "./measured.ts";
import type { ArtifactStore } from "./types.ts";

export interface FileToPlace {
  path: string;
  /** Small ones whole, those of the store as a stream. */
  bytes: Buffer | Readable;
  mode: number;
}

/**
 * The files an activation brings along, each when it is its turn. Throws "file_not_usable", naming the file: a checksum that
 * does not fit, a file that nobody put, or a source that is not served yet. All are final. A stream fails with
 * "sha256_differs".
 */
export async function* filesToPlace(
  files: readonly PlacedFile[],
  store: Pick<ArtifactStore, "hasInput" | "openInput">,
): AsyncGenerator<FileToPlace, undefined> {
  for (const file of files) {
    const bytes = file.artifact === undefined ? inlineBytes(file) : await storedBytes(file, file.artifact.slice("sha256:".length), store);
    yield { path: file.path, bytes, mode: file.executable ? 0o755 : 0o644 };
  }
  return undefined;
}

async function storedBytes(file: PlacedFile, sha256: string, store: Pick<ArtifactStore, "hasInput" | "openInput">): Promise<Readable> {
  if (await store.hasInput(sha256)) return withSha256(store.openInput(sha256), sha256);
  throw new RollcallError("file_not_usable", `${name(file)}: nobody put a file with sha256 ${sha256} (PUT /v1/files/${sha256})`);
}

function inlineBytes(file: PlacedFile): Buffer {
  const bytes = decoded(file);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  if (file.sha256 === undefined || file.sha256 === sha256) return bytes;
  throw new RollcallError("file_not_usable", `${name(file)} has sha256 ${sha256}, the activation says ${file.sha256}`);
}

function decoded(file: PlacedFile): Buffer {
  if (file.content !== undefined) return Buffer.from(file.content, "utf8");
  if (file.content_base64 !== undefined) return Buffer.from(file.content_base64, "base64");
  throw new RollcallError("file_not_usable", `${name(file)} has no source that is supported`);
}

function name(file: PlacedFile): string {
  return `the file to place ${JSON.stringify(file.path.slice(0, 200))}`;
}
