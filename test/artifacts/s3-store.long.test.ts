// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { inspect } from "node:util";
import {
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { openArtifactStore } from "../../src/artifacts/open-store.ts";
import { s3Leftovers } from "../../src/artifacts/s3-leftovers.ts";
import { parseS3Location } from "../../src/artifacts/s3-location.ts";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import { cephMissing, startCeph, type TestS3 } from "../support/ceph.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { refusal, startS3Proxy, type S3Proxy } from "../support/s3-proxy.ts";
import { tempDir } from "../support/temp-dir.ts";
import { describeStore } from "./store-conformance.ts";

let ceph: TestS3;
let bucket: string;

beforeAll(async () => {
  if (!cephMissing) ceph = await startCeph();
}, 120_000);
afterAll(() => cephMissing || ceph.stop());
beforeEach(async () => {
  if (cephMissing) return;
  for (const [name, value] of Object.entries(ceph.env)) vi.stubEnv(name, value);
  bucket = await ceph.newBucket();
});
afterEach(() => {
  vi.unstubAllEnvs();
});

const OUTPUT = { kind: "output", source: "/workspace/x", quarantined: false } as const;

/** Objects, then uploads that were begun and neither completed nor aborted. */
async function everythingBelow(prefix: string): Promise<string[]> {
  const { Contents = [] } = await ceph.client.send(new ListObjectsV2Command({ Bucket: bucket }));
  const { Uploads = [] } = await ceph.client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
  const paths = [...Contents, ...Uploads].map(({ Key = "" }) => Key);
  return paths.map((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : path)).sort();
}

describe.skipIf(cephMissing)("on a real S3 server", () => {
  describeStore("a bucket's prefix", () => {
    const own = "some/prefix ü/";
    return Promise.resolve({
      open: () => openArtifactStore(`s3://${bucket}/${own}`, { endpoint: ceph.endpoint }),
      openOther: () => openArtifactStore(`s3://${bucket}/other`, { endpoint: ceph.endpoint }),
      paths: () => everythingBelow(own),
      async plant(path: string, text: string) {
        await ceph.client.send(new PutObjectCommand({ Bucket: bucket, Key: own + path, Body: text }));
      },
      uriRoot: `s3://${bucket}/some/prefix%20%C3%BC/`,
    });
  });

  describe("an S3 store", () => {
    test("is the same store with and without a slash at its end, and by the SDK's own variable", async () => {
      const one = await openArtifactStore(`s3://${bucket}/p/`, { endpoint: ceph.endpoint });
      const same = await openArtifactStore(`s3://${bucket}/p`, { region: "eu-west-1", force_path_style: true });
      expect(same.id).toBe(one.id);
      expect(await everythingBelow("")).toEqual(["p/_store.json"]);
    });

    test("needs three parts' memory for 60 MB, which come back byte for byte [A11]", async () => {
      const script = `
        const { openArtifactStore } = await import("./dist/src/artifacts/open-store.js");
        const { Readable } = await import("node:stream");
        const store = await openArtifactStore("s3://${bucket}/p", { endpoint: "${ceph.endpoint}" });
        const put = (path, chunks) => store.put("act-1", 0, path, Readable.from((function* () {
          for (let n = 0; n < chunks; n++) yield Buffer.alloc(1_000_000, n);
        })(), { objectMode: false }), { kind: "output", source: null, quarantined: false });
        await put("small", 20);
        const before = process.resourceUsage().maxRSS;
        const { bytes, sha256 } = await put("large", 60);
        console.log(JSON.stringify({ bytes, sha256, grownMB: (process.resourceUsage().maxRSS - before) / 1024 }));`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
      const told = JSON.parse((await buffer(child.stdout)).toString()) as { bytes: number; sha256: string; grownMB: number };
      expect(told.bytes).toBe(60_000_000);
      expect(told.grownMB).toBeLessThan(45);
      const store = await openArtifactStore(`s3://${bucket}/p`, { endpoint: ceph.endpoint });
      const copy = await store.put("act-1", 1, "copy", store.open("act-1", 0, "large"), OUTPUT);
      expect(copy).toMatchObject({ bytes: told.bytes, sha256: told.sha256 });
    }, 120_000);

    test("has nothing of what a killed worker was uploading, and no end that it did not commit", async () => {
      const script = `
        const { openArtifactStore } = await import("./dist/src/artifacts/open-store.js");
        const { PassThrough } = await import("node:stream");
        const store = await openArtifactStore("s3://${bucket}/p", { endpoint: "${ceph.endpoint}" });
        const body = new PassThrough();
        store.put("act-1", 0, "x", body, { kind: "output", source: null, quarantined: false });
        body.write(Buffer.alloc(12_000_000));
        setInterval(() => {}, 1000);`;
      const worker = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
      const ended = once(worker, "exit");
      // The upload was begun: it is listed as such.
      await vi.waitFor(async () => expect(await everythingBelow("p/")).toContain("act-1/attempt-0/x"), { timeout: 20_000 });
      worker.kill("SIGKILL");
      await ended;
      const store = await openArtifactStore(`s3://${bucket}/p`, { endpoint: ceph.endpoint });
      expect(await store.readCommit("act-1")).toBeNull();
      await expect(buffer(store.open("act-1", 0, "x"))).rejects.toMatchObject({ code: "store_failed" });
      // Another attempt of the same number could write it, had the first got no further.
      expect(await store.put("act-1", 0, "x", Readable.from([Buffer.from("x")]), OUTPUT)).toMatchObject({ bytes: 1 });
    });
  });

  describe("gc of uploads that killed workers began", () => {
    const HOUR = 3_600_000;
    const begin = async (Key: string): Promise<void> => {
      const { UploadId } = await ceph.client.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key }));
      await ceph.client.send(new UploadPartCommand({ Bucket: bucket, Key, UploadId, PartNumber: 1, Body: Buffer.alloc(5_242_880) }));
    };
    const uploads = async (): Promise<string[]> => {
      const { Uploads = [] } = await ceph.client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
      return Uploads.map(({ Key = "" }) => Key).sort();
    };
    /** Takes away what it finds, `hours` from now. */
    async function collected(prefix: string, hours: number): Promise<string[]> {
      const found: string[] = [];
      const leftovers = s3Leftovers({ bucket, prefix }, { endpoint: ceph.endpoint }, Date.now() + hours * HOUR);
      for await (const { kind, what, remove } of leftovers) {
        expect([kind, await remove()]).toEqual(["upload", null]);
        found.push(what.slice(`s3://${bucket}/${prefix}`.length));
      }
      return found.sort();
    }

    test("ends those of attempts that are over, when they are an hour old, below the store's own prefix only", async () => {
      const store = await openArtifactStore(`s3://${bucket}/p`, { endpoint: ceph.endpoint });
      await store.putAttempt("act-saved", attemptOf(0));
      await store.commit(resultOf("act-ended"));
      await store.put("act-again", 1, "events.jsonl", Readable.from([Buffer.from("x")]), OUTPUT);
      const over = ["act-again/attempt-0/events.jsonl", "act-ended/attempt-2/outputs/a b", "act-saved/attempt-0/events.jsonl"];
      const running = ["act-again/attempt-1/transcript.jsonl", "act-lost/attempt-0/events.jsonl", "act-saved/attempt-1/events.jsonl"];
      const foreign = ["p/not ours", "p/act-ended/x", "p2/act-ended/attempt-0/x", "act-ended/attempt-0/x"];
      for (const key of [...over, ...running].map((path) => `p/${path}`).concat(foreign)) await begin(key);

      expect(await collected("p/", 0.9)).toEqual([]);
      expect(await collected("p/", 1.1)).toEqual(over);
      expect(await collected("p/", 1.1)).toEqual([]);
      expect(await uploads()).toEqual([...running.map((path) => `p/${path}`), ...foreign].sort());
      expect(await collected("p/", 8 * 24 + 1)).toEqual(running);
      expect(await uploads()).toEqual([...foreign].sort());
      expect(await collected("p2/", 1_000)).toEqual([]); // there is no store
    }, 120_000);

    test("is part of `rollcall gc`, which says so when it cannot look", async () => {
      const store = await openArtifactStore(`s3://${bucket}/p`, { endpoint: ceph.endpoint });
      await store.commit(resultOf("act-ended"));
      await begin("p/act-ended/attempt-0/events.jsonl");
      const env = { ...ceph.env, ROLLCALL_ARTIFACTS: `s3://${bucket}/p`, XDG_STATE_HOME: tempDir() };
      const young = await rollcall(["gc"], { env });
      expect(young.code, young.stderr).toBe(0);
      expect(young.stdout).toContain("nothing was left here");
      expect(await uploads()).toHaveLength(1);
      const missing = await rollcall(["gc"], { env: { ...env, ROLLCALL_ARTIFACTS: "s3://missing-bucket/p" } });
      expect(missing).toMatchObject({ code: 1, stdout: expect.stringContaining("NoSuchBucket") as string });
    });
  });

  describe("an S3 server that answers", () => {
    let proxy: S3Proxy;
    let open: () => Promise<ArtifactStore>;
    beforeEach(async () => {
      proxy = await startS3Proxy(ceph.endpoint);
      open = () => openArtifactStore(`s3://${bucket}/p`, { endpoint: proxy.endpoint });
    });
    afterEach(() => proxy.close());

    test("conditional writes as if nothing were there is refused: two could commit", async () => {
      await open();
      proxy.treat = ({ headers }) => (headers["if-none-match"] === "*" ? { status: 200 } : "pass");
      await expect(open()).rejects.toMatchObject({
        code: "store_not_conditional",
        message: expect.stringContaining("ignores `If-None-Match: *`") as string,
      });
    });

    test("that it has no conditional writes is refused, saying so", async () => {
      await open();
      proxy.treat = ({ headers }) => (headers["if-none-match"] === "*" ? refusal(501, "NotImplemented") : "pass");
      await expect(open()).rejects.toMatchObject({
        code: "store_unwritable",
        message: expect.stringContaining("NotImplemented") as string,
      });
    });

    test("and whose answer to a commit is lost has committed it: the same worker is told so", async () => {
      const store = await open();
      let lost = 0;
      proxy.treat = ({ method }) => (method === "PUT" && lost++ === 0 ? "lose_answer" : "pass");
      expect(await store.commit(resultOf("act-1"))).toMatchObject({ committed: true });
      expect(lost).toBe(2);
      lost = 0;
      expect(await store.put("act-1", 0, "x", Readable.from([Buffer.from("x")]), OUTPUT)).toMatchObject({ bytes: 1 });
      expect(lost).toBe(2);
    });

    test("a commit with 409, because another one is at work, is asked again", async () => {
      const store = await open();
      let conflicts = 0;
      proxy.treat = ({ method }) => (method === "PUT" && conflicts++ < 2 ? refusal(409, "ConditionalRequestConflict") : "pass");
      expect(await store.commit(resultOf("act-1"))).toMatchObject({ committed: true });
      expect(await store.commit(resultOf("act-1", { status: "failed" }))).toMatchObject({
        committed: false,
        result: { status: "completed" },
      });
    });

    test("that it has no conditional deletes sets ends aside all the same; one that has them keeps what came meanwhile", async () => {
      const store = await open();
      await store.commit(resultOf("act-1"));
      proxy.treat = ({ method, headers }) =>
        method === "DELETE" && headers["if-match"] !== undefined ? refusal(412, "PreconditionFailed") : "pass";
      await store.setAside("act-1", 0);
      expect(await store.readCommit("act-1")).not.toBeNull();
      proxy.treat = ({ method, headers }) =>
        method === "DELETE" && headers["if-match"] !== undefined ? refusal(501, "NotImplemented") : "pass";
      await store.setAside("act-1", 0);
      expect(await store.readCommit("act-1")).toBeNull();
    });

    test("an upload of many parts with an error has no parts left", async () => {
      const store = await open();
      let parts = 0;
      proxy.treat = ({ url = "" }) => (url.includes("partNumber") && parts++ > 0 ? refusal(403, "AccessDenied") : "pass");
      const body = Readable.from([Buffer.alloc(20_000_000)]);
      await expect(store.put("act-1", 0, "x", body, OUTPUT)).rejects.toMatchObject({ code: "store_failed" });
      expect(body.destroyed).toBe(true);
      expect(parts).toBe(2);
      expect(await everythingBelow("p/")).toEqual(["_store.json"]);
    });
  });

  describe("no error of an S3 store tells the credentials", () => {
    const told = async (work: Promise<unknown>): Promise<string> => {
      const error = await work.then(
        () => "no error",
        (thrown: unknown) => thrown,
      );
      const text = inspect(error, { depth: null, showHidden: true });
      expect(text).not.toContain(process.env["AWS_SECRET_ACCESS_KEY"]);
      expect(text).not.toContain(process.env["AWS_ACCESS_KEY_ID"]);
      return (error as Error).message;
    };

    test("when the bucket is missing, the secret is wrong, nobody listens [C4]", async () => {
      const place = `s3://${bucket}/p`;
      expect(await told(openArtifactStore("s3://missing-bucket/p", { endpoint: ceph.endpoint }))).toMatch(
        /s3:\/\/missing-bucket\/p\/_store.json: NoSuchBucket; HTTP 404; create the bucket first/,
      );
      vi.stubEnv("AWS_SECRET_ACCESS_KEY", "another-secret-key");
      expect(await told(openArtifactStore(place, { endpoint: ceph.endpoint }))).toContain("SignatureDoesNotMatch; HTTP 403");
      expect(await told(openArtifactStore(place, { endpoint: "http://127.0.0.1:9" }))).toContain("ECONNREFUSED");
    });

    test("when the server sends them back [C4]", async () => {
      const proxy = await startS3Proxy(ceph.endpoint);
      try {
        const { AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: secret } = ceph.env;
        const more = `<Message>User ${key} may not; ${secret}</Message><AWSAccessKeyId>${key}</AWSAccessKeyId>`;
        proxy.treat = () => refusal(403, "AccessDenied", more);
        const message = await told(openArtifactStore(`s3://${bucket}/p`, { endpoint: proxy.endpoint }));
        expect(message).toContain("AccessDenied; HTTP 403; User [redacted] may not; [redacted]; docs/storage.md lists");
      } finally {
        await proxy.close();
      }
    });

    test("when there are none", async () => {
      vi.stubEnv("AWS_ACCESS_KEY_ID", undefined);
      vi.stubEnv("AWS_SECRET_ACCESS_KEY", undefined);
      vi.stubEnv("HOME", "/nonexistent");
      await expect(openArtifactStore(`s3://${bucket}/p`, { endpoint: ceph.endpoint })).rejects.toMatchObject({
        code: "store_unwritable",
        message: expect.stringContaining("set AWS_ACCESS_KEY_ID") as string,
      });
    });
  });
});

test.each([
  ["s3://bucket", { bucket: "bucket", prefix: "" }],
  ["s3://bucket/", { bucket: "bucket", prefix: "" }],
  ["s3://my.bucket-1/a/b c", { bucket: "my.bucket-1", prefix: "a/b c/" }],
  ["s3://bucket/a/", { bucket: "bucket", prefix: "a/" }],
  ["s3://bucket/a//b", null],
  ["s3://bucket/../b", null],
  ["s3://key:secret@bucket/a", null],
  ["s3://", null],
  ["s3:bucket", null],
  ["/a/directory", null],
])("%j as a place in a bucket", (text, location) => {
  expect(parseS3Location(text)).toEqual(location);
});
