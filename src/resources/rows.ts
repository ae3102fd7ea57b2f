// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { stringify } from "safe-stable-stringify";
import type { ArtifactStore } from "../artifacts/types.ts";
import { RollcallError } from "../errors.ts";
import type { Row } from "./wire.ts";

/** Keeps a row among the store's inputs; answers its sha256. The same row is kept once. */
export async function keepRow(store: ArtifactStore, row: Row): Promise<string> {
  const bytes = Buffer.from(stringify(row), "utf8");
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  await store.putInput(sha256, Readable.from([bytes]));
  return sha256;
}

/** The row of that sha256; it was bounded when it was read from its file. Throws RollcallError "row_missing" when somebody removed it. */
export async function readRow(store: ArtifactStore, sha256: string): Promise<Row> {
  try {
    return JSON.parse(await text(store.openInput(sha256))) as Row;
  } catch (error) {
    if (await store.hasInput(sha256)) throw error; // the store is away
    throw new RollcallError("row_missing", `the store ${store.id} no longer has the row with sha256 ${sha256}`, { cause: error });
  }
}
