// SPDX-License-Identifier: Apache-2.0
import { Readable } from "node:stream";
import { RollcallError } from "../errors.ts";
import { endsAndAttempts, newStoreText, readAttempt, storeIdIn } from "./documents.ts";
import { activationPath, artifactPath, attemptNumbers, inputPath, isActivationId, resultPath, STORE_FILE, withheldPath } from "./layout.ts";
import { measured, measuredFile, withSha256 } from "./measured.ts";
import type { S3Settings } from "./open-store.ts";
import { makeS3Client, s3Error } from "./s3-client.ts";
import type { S3Location } from "./s3-location.ts";
import { openS3Objects, type S3Objects } from "./s3-objects.ts";
import type { ArtifactStore } from "./types.ts";

/** How many results are looked for at once; one look takes tens of milliseconds. */
const LOOKS_AT_ONCE = 16;

/**
 * The `s3:` store: the same layout as in a directory, as objects below a prefix of a bucket that exists. An end is created by
 * a conditional put (`If-None-Match: *`); a server that does not keep to the condition is refused with
 * "store_not_conditional", because two workers could both commit. Throws "store_unwritable" and "store_damaged" too.
 * An artifact is there whole or not at all: what a killed worker was uploading is lost.
 */
export async function openS3Store(location: S3Location, settings: S3Settings): Promise<ArtifactStore> {
  const client = makeS3Client(settings);
  const objects = openS3Objects(client, location);
  const id = await storeId(objects).catch(async (error: unknown) => {
    if (error instanceof RollcallError && error.code === "store_failed")
      throw new RollcallError("store_unwritable", `the artifact store is not usable: ${error.message}`);
    throw await s3Error(client, "store_unwritable", `use the artifact store ${objects.nameOf("")}`, error);
  });
  async function numbersOf(activationId: string): Promise<number[]> {
    const names: string[] = [];
    for await (const page of objects.directories(activationPath(activationId), "attempt-")) names.push(...page);
    return attemptNumbers(names);
  }
  return {
    id,
    directory: null,
    ...endsAndAttempts(objects),
    async put(activationId, attempt, path, body, { kind, source, quarantined }) {
      const place = artifactPath(activationId, attempt, path);
      const { bytes, written } = measured(body);
      try {
        await objects.upload(place, bytes);
      } finally {
        body.destroy();
      }
      return { path, uri: objects.addressOf(place), source, kind, quarantined, ...written() };
    },
    open: (activationId, attempt, path, range) =>
      Readable.from(objects.download(artifactPath(activationId, attempt, path), range), { objectMode: false }),
    size: (activationId, attempt, path) => objects.size(artifactPath(activationId, attempt, path)),
    async putInput(sha256, body) {
      if (await objects.exists(inputPath(sha256))) {
        body.destroy();
        return;
      }
      // The check comes before the last byte: what does not fit is never there.
      await objects.upload(inputPath(sha256), withSha256(body, sha256)).catch((error: unknown) => {
        if (!(error instanceof RollcallError && error.code === "artifact_exists")) throw error; // put by two at once
      });
    },
    openInput: (sha256) => Readable.from(objects.download(inputPath(sha256)), { objectMode: false }),
    hasInput: (sha256) => objects.exists(inputPath(sha256)),
    async find(activationId, attempt, path, facts) {
      const place = artifactPath(activationId, attempt, path);
      if (!(await objects.exists(place))) return null;
      const there = await measuredFile(Readable.from(objects.download(place), { objectMode: false }));
      return there === null ? null : { path, uri: objects.addressOf(place), ...facts, ...there };
    },
    async withhold(activationId, attempt, path) {
      const withheld = withheldPath(path);
      const place = artifactPath(activationId, attempt, withheld);
      await objects.move(artifactPath(activationId, attempt, path), place);
      return { path: withheld, uri: objects.addressOf(place) };
    },
    attemptNumbers: numbersOf,
    async readAttempts(activationId) {
      const attempts = await Promise.all((await numbersOf(activationId)).map((number) => readAttempt(objects, activationId, number)));
      return attempts.filter((attempt) => attempt !== null);
    },
    async *listEnded() {
      for await (const page of objects.directories("")) {
        const ids = page.filter(isActivationId);
        for (let first = 0; first < ids.length; first += LOOKS_AT_ONCE) {
          const some = ids.slice(first, first + LOOKS_AT_ONCE);
          const ended = await Promise.all(some.map((one) => objects.exists(resultPath(one))));
          yield* some.filter((_, index) => ended[index]);
        }
      }
    },
  };
}

/** Reads the store's id, or gives a new store one. Then creates it once more, which must not succeed. */
async function storeId(objects: S3Objects): Promise<string> {
  if ((await objects.read(STORE_FILE)) === null) await objects.create(STORE_FILE, newStoreText());
  const text = await objects.read(STORE_FILE);
  const id = storeIdIn(text, objects);
  // The same text again: where the condition is ignored, nothing is changed by having tried.
  if (text === null || !(await objects.create(STORE_FILE, text))) return id;
  throw new RollcallError(
    "store_not_conditional",
    `the S3 server ignores \`If-None-Match: *\`: it wrote ${objects.nameOf(STORE_FILE)} over the one that was there. ` +
      "Two workers could both commit a result; use a server with conditional writes, or a shared directory",
  );
}
