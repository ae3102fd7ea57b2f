// SPDX-License-Identifier: Apache-2.0
import { AbortMultipartUploadCommand, ListMultipartUploadsCommand, type S3Client } from "@aws-sdk/client-s3";
import { messageOf } from "../errors.ts";
import type { Leftover } from "../host/leftover.ts";
import { attemptFilePath, attemptNumbers, isActivationId, resultPath, STORE_FILE } from "./layout.ts";
import type { S3Settings } from "./open-store.ts";
import { makeS3Client, refusalOf, s3Error } from "./s3-client.ts";
import type { S3Location } from "./s3-location.ts";
import { openS3Objects, type S3Objects } from "./s3-objects.ts";

const HOUR_MS = 3_600_000;
/** A worker that lost its claim may still be saving what it saw. */
const OVER_MS = HOUR_MS;
/** No session is longer than a week. */
const ANY_MS = 8 * 24 * HOUR_MS;

interface Upload {
  key: string;
  id: string;
  begun: number;
}

/**
 * Uploads below the store's own prefix that a killed worker began and nobody will end: no list of objects shows their parts, and
 * they are paid for. Gone when their attempt is over and they are an hour old, whatever became of it when they are eight days old.
 * Throws "store_failed". `now`: ms since 1970.
 */
export async function* s3Leftovers(location: S3Location, settings: S3Settings, now = Date.now()): AsyncGenerator<Leftover> {
  const client = makeS3Client(settings);
  const objects = openS3Objects(client, location);
  if ((await objects.read(STORE_FILE)) === null) return; // no store of ours
  for await (const { key, id, begun } of uploads(client, location, objects)) {
    const path = key.slice(location.prefix.length);
    const [, activationId = "", attempt = ""] = /^([^/]+)\/attempt-(\d+)\/./u.exec(path) ?? [];
    if (!isActivationId(activationId) || now - begun < OVER_MS) continue;
    const why = now - begun >= ANY_MS ? "it is eight days old" : await whyOver(objects, activationId, Number(attempt));
    if (why === null) continue;
    yield {
      kind: "upload",
      what: objects.nameOf(path),
      why: `an upload that was not ended, begun ${new Date(begun).toISOString()}: ${why}`,
      async remove() {
        try {
          await client.send(new AbortMultipartUploadCommand({ Bucket: location.bucket, Key: key, UploadId: id }));
          return null;
        } catch (error) {
          return refusalOf(error) === "NoSuchUpload" ? null : messageOf(await s3Error(client, "store_failed", "end it", error));
        }
      },
    };
  }
}

/** Why an attempt is over; null when it may still run. */
async function whyOver(objects: S3Objects, activationId: string, attempt: number): Promise<string | null> {
  if (await objects.exists(attemptFilePath(activationId, attempt))) return "its attempt has ended";
  if (await objects.exists(resultPath(activationId))) return "its activation has ended";
  for await (const names of objects.directories(activationId, "attempt-"))
    if (attemptNumbers(names).some((number) => number > attempt)) return "a later attempt has begun";
  return null;
}

async function* uploads(client: S3Client, { bucket, prefix }: S3Location, objects: S3Objects): AsyncGenerator<Upload> {
  let marker: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {};
  for (;;) {
    const page = await client
      .send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix, ...marker }))
      .catch(async (error: unknown) =>
        Promise.reject(await s3Error(client, "store_failed", `list uploads below ${objects.nameOf("")}`, error)),
      );
    for (const { Key: key, UploadId: id, Initiated: begun } of page.Uploads ?? []) {
      if (key?.startsWith(prefix) === true && id !== undefined && begun !== undefined) yield { key, id, begun: begun.getTime() };
    }
    if (page.IsTruncated !== true) return;
    marker = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
  }
}
