// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { RollcallError } from "../errors.ts";
import { createOnly } from "../host/files.ts";
import { stateFiles } from "./paths.ts";

const KEY_BYTES = 32;

/**
 * The deployment key of an embedded Redis: 32 random bytes, in `<stateDir>/secret.key` as base64, for this user only.
 * Made at the first call; two first calls at once get the same key.
 * @throws RollcallError state_key_invalid
 */
export async function loadOrCreateStateKey(stateDir: string): Promise<Buffer> {
  const path = stateFiles(stateDir).secretKey;
  await createOnly(path, `${randomBytes(KEY_BYTES).toString("base64")}\n`, 0o600);
  const key = Buffer.from(await readFile(path, "utf8"), "base64");
  if (key.length !== KEY_BYTES) {
    throw new RollcallError(
      "state_key_invalid",
      `${path} does not hold ${KEY_BYTES} bytes in base64. Restore it; without it the values sealed in this queue are lost (then delete ${stateDir})`,
    );
  }
  return key;
}
