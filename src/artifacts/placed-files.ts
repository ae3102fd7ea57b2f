// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { PlacedFile } from "../contract/activation.ts";
import { RollcallError } from "../errors.ts";

export interface FileToPlace {
  path: string;
  bytes: Buffer;
  mode: number;
}

/**
 * The bytes of the files an activation brings along. Throws "file_not_usable", naming the file: a checksum that does not
 * fit, or a source that is not served yet. Both are final.
 */
export function filesToPlace(files: readonly PlacedFile[]): FileToPlace[] {
  return files.map((file) => {
    const bytes = inlineBytes(file);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    if (file.sha256 !== undefined && file.sha256 !== sha256) {
      throw new RollcallError("file_not_usable", `${name(file)} has sha256 ${sha256}, the activation says ${file.sha256}`);
    }
    return { path: file.path, bytes, mode: file.executable ? 0o755 : 0o644 };
  });
}

function inlineBytes(file: PlacedFile): Buffer {
  if (file.content !== undefined) return Buffer.from(file.content, "utf8");
  if (file.content_base64 !== undefined) return Buffer.from(file.content_base64, "base64");
  throw new RollcallError("file_not_usable", `${name(file)} has neither content nor content_base64; other sources are not supported yet`);
}

function name(file: PlacedFile): string {
  return `the file to place ${JSON.stringify(file.path.slice(0, 200))}`;
}
