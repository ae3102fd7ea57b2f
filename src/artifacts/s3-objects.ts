// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  paginateListObjectsV2,
  PutObjectCommand,
  type HeadObjectCommandOutput,
  type S3Client,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { RollcallError } from "../errors.ts";
import type { Documents } from "./documents.ts";
import { refusalOf, s3Error, statusOf } from "./s3-client.ts";
import type { S3Location } from "./s3-location.ts";
import type { ByteRange } from "./types.ts";

/** S3's smallest; sent one after the other, so that an upload holds about three of them, whatever its size. At most 10,000. */
const PART_BYTES = 5_242_880;
const MAX_KEY_BYTES = 1_024;
/** How often a create that met another one at work is tried; the server asks for it. */
const CONFLICT_TRIES = 8;
/** Kept with each document, to tell an own create, whose answer was lost, from somebody else's. */
const WRITER = "rollcall-writer";

export interface S3Objects extends Documents {
  exists(path: string): Promise<boolean>;
  /** null: it is not there. */
  size(path: string): Promise<number | null>;
  /** Streams; create-only where the server can. Throws "artifact_exists", "path_too_long", or the body's own error. */
  upload(path: string, body: Readable): Promise<void>;
  download(path: string, range?: ByteRange): AsyncGenerator<Uint8Array>;
  move(from: string, to: string): Promise<void>;
  /** Names right below a path ("" is the root) that begin with `begins` and have something below them, by pages. */
  directories(path: string, begins?: string): AsyncGenerator<string[]>;
}

/** The objects below a prefix. Everything throws "store_failed" when the server does not do what it is asked. */
export function openS3Objects(client: S3Client, { bucket, prefix }: S3Location): S3Objects {
  const at = (path: string): { Bucket: string; Key: string } => ({ Bucket: bucket, Key: prefix + path });
  const nameOf = (path: string): string => `s3://${bucket}/${prefix}${path}`;
  async function told<T>(verb: string, path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw await s3Error(client, "store_failed", `${verb} ${nameOf(path)}`, error);
    }
  }
  const head = (path: string): Promise<HeadObjectCommandOutput | null> =>
    told("look at", path, () => nullIfMissing(client.send(new HeadObjectCommand(at(path)))));

  const isBy = async (path: string, writer: string): Promise<boolean> => (await head(path))?.Metadata?.[WRITER] === writer;

  async function readWithTag(path: string): Promise<{ text: string; tag: string | undefined } | null> {
    return told("read", path, async () => {
      const object = await nullIfMissing(client.send(new GetObjectCommand(at(path))));
      return object === null ? null : { text: (await object.Body?.transformToString("utf8")) ?? "", tag: object.ETag };
    });
  }

  return {
    nameOf,
    addressOf: (path) => `s3://${bucket}/${(prefix + path).split("/").map(encodeURIComponent).join("/")}`,
    exists: async (path) => (await head(path)) !== null,
    size: async (path) => (await head(path))?.ContentLength ?? null,
    read: async (path) => (await readWithTag(path))?.text ?? null,
    async create(path, text) {
      const writer = randomUUID();
      const request = { ...at(path), Body: text, ContentType: "application/json", IfNoneMatch: "*", Metadata: { [WRITER]: writer } };
      return told("create", path, async () => {
        for (let tries = 1; ; tries++) {
          try {
            await client.send(new PutObjectCommand(request));
            return true;
          } catch (error) {
            if (statusOf(error) === 412) return isBy(path, writer);
            if (statusOf(error) !== 409 || tries === CONFLICT_TRIES) throw error;
            await delay(Math.random() * 50 * 2 ** tries);
          }
        }
      });
    },
    async remove(path, text) {
      const there = await readWithTag(path);
      if (there?.text !== text) return;
      const unchanged = there.tag === undefined ? {} : { IfMatch: there.tag };
      await told("remove", path, async () => {
        try {
          await client.send(new DeleteObjectCommand({ ...at(path), ...unchanged }));
        } catch (error) {
          if (statusOf(error) === 412) return; // another one is there since
          if (statusOf(error) !== 501) throw error; // 501: a server without conditional deletes
          await client.send(new DeleteObjectCommand(at(path)));
        }
      });
    },
    async upload(path, body) {
      if (Buffer.byteLength(prefix + path) > MAX_KEY_BYTES)
        throw new RollcallError("path_too_long", `${nameOf(path).slice(0, 200)}... is too long for S3`);
      const there = (): RollcallError => new RollcallError("artifact_exists", `${nameOf(path)} is there already`);
      // Not every server looks at the condition when a multipart upload completes.
      if ((await head(path)) !== null) throw there();
      const writer = randomUUID();
      const params = { ...at(path), Body: body, IfNoneMatch: "*", Metadata: { [WRITER]: writer } };
      const upload = new Upload({ client, params, partSize: PART_BYTES, queueSize: 1 });
      try {
        await upload.done();
      } catch (error) {
        if (body.errored !== null) throw body.errored;
        if (statusOf(error) === 412) {
          if (await isBy(path, writer)) return;
          throw there();
        }
        throw await s3Error(client, "store_failed", `write ${nameOf(path)}`, error);
      }
    },
    async *download(path, range) {
      const part = range === undefined ? {} : { Range: `bytes=${range.start}-${range.end}` };
      const object = await told("read", path, () => client.send(new GetObjectCommand({ ...at(path), ...part })));
      yield* object.Body as AsyncIterable<Uint8Array>;
    },
    async move(from, to) {
      const source = [bucket, ...(prefix + from).split("/")].map(encodeURIComponent).join("/");
      await told("move", from, async () => {
        await client.send(new CopyObjectCommand({ ...at(to), CopySource: source }));
        await client.send(new DeleteObjectCommand(at(from)));
      });
    },
    async *directories(path, begins = "") {
      const below = prefix + (path === "" ? "" : `${path}/`);
      const pages = paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: below + begins, Delimiter: "/" });
      try {
        for await (const { CommonPrefixes = [] } of pages)
          yield CommonPrefixes.flatMap(({ Prefix }) => (Prefix === undefined ? [] : [Prefix.slice(below.length, -1)]));
      } catch (error) {
        throw await s3Error(client, "store_failed", `list ${nameOf(path)}`, error);
      }
    },
  };
}

/** A missing bucket is no missing object. HEAD has no body, so there the name is the status's. */
async function nullIfMissing<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (["NoSuchKey", "NotFound"].includes(refusalOf(error) ?? "")) return null;
    throw error;
  }
}
