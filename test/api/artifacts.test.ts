// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { hashApiKey, openApiKeys } from "../../src/api/api-keys.ts";
import { rangeOf } from "../../src/api/byte-range.ts";
import { resultOf } from "../support/result-documents.ts";
import { tempDir } from "../support/temp-dir.ts";
import { startApiRig, type ApiRig } from "./rig.ts";

const FACTS = { kind: "output" as const, source: null, quarantined: false };

async function put(rig: ApiRig, path: string, text: string): Promise<void> {
  await rig.store.put("act-1", 0, path, Readable.from([Buffer.from(text)]), FACTS);
}

/** The path goes out as it is: fetch would tidy it up. */
async function raw(rig: ApiRig, path: string): Promise<{ status: number; text: string }> {
  const asking = request(rig.api.origin, { path, headers: { authorization: `Bearer ${rig.key}` } });
  asking.end();
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  let text = "";
  for await (const part of response.setEncoding("utf8")) text += part as string;
  return { status: response.statusCode!, text };
}

it("a file comes whole, or the range that is asked for, and never as a page", async () => {
  const rig = await startApiRig();
  await put(rig, "outputs/a dir/report.html", "0123456789");
  const path = "/v1/artifacts/act-1/0/outputs/a%20dir/report.html";
  const whole = await rig.call(path);
  expect(whole).toMatchObject({ status: 200, body: "0123456789" });
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    "content-type": "application/octet-stream",
    "content-disposition": "attachment; filename*=UTF-8''report.html",
    "x-content-type-options": "nosniff",
    "content-length": "10",
    "accept-ranges": "bytes",
  });
  for (const [range, status, body] of [
    ["bytes=2-4", 206, "234"],
    ["bytes=7-", 206, "789"],
    ["bytes=-3", 206, "789"],
    ["bytes=5-100", 206, "56789"],
    ["bytes=0-1,4-5", 200, "0123456789"],
    ["lines=1-2", 200, "0123456789"],
  ] as const)
    expect(await rig.call(path, { headers: { range } })).toMatchObject({ status, body });
  const beyond = await rig.call(path, { headers: { range: "bytes=10-" } });
  expect(beyond).toMatchObject({ status: 416, body: { code: "range_not_satisfiable" } });
  expect(beyond.headers.get("content-range")).toBe("bytes */10");
  expect((await rig.call("/v1/artifacts/act-1/0/outputs%2Fa%20dir%2Freport.html")).body).toBe("0123456789");
  expect((await rig.call(path, { method: "HEAD" })).headers.get("content-length")).toBe("10");
});

it("nothing outside of an attempt can be had, however it is spelt, nor through a link", async () => {
  const rig = await startApiRig();
  await put(rig, "outputs/ok.txt", "fine");
  const outside = tempDir();
  writeFileSync(join(outside, "secret.txt"), "SECRET-OUTSIDE");
  writeFileSync(join(rig.storeRoot, "secret.txt"), "SECRET-OUTSIDE");
  mkdirSync(join(rig.storeRoot, "act-1/attempt-0/outputs/more"), { recursive: true });
  symlinkSync(join(outside, "secret.txt"), join(rig.storeRoot, "act-1/attempt-0/outputs/link.txt"));
  symlinkSync(outside, join(rig.storeRoot, "act-1/attempt-0/outputs/dir"));
  for (const path of [
    "act-1/0/../../secret.txt",
    "act-1/0/outputs/../../../secret.txt",
    "act-1/0/outputs/..%2f..%2f..%2fsecret.txt",
    "act-1/0/%2e%2e/%2e%2e/secret.txt",
    "act-1/0/..%5c..%5csecret.txt",
    "act-1/0/%252e%252e/secret.txt",
    "act-1/0//etc/passwd",
    "act-1/0/outputs/link.txt",
    "act-1/0/outputs/dir/secret.txt",
    "act-1/0/outputs/more",
    "act-1/0/outputs",
    "act-1/0/outputs/ok.txt%00.png",
    "../0/secret.txt",
    "%2e%2e/0/secret.txt",
    "act-1/-1/outputs/ok.txt",
    "act-1/00000000000000000000009/outputs/ok.txt",
    `act-1/0/${"x".repeat(5_000)}`,
    "act-1/0/%ff%fe",
    "act-1/0/%",
  ]) {
    const { status, text } = await raw(rig, `/v1/artifacts/${path}`);
    expect([path, status]).toEqual([path, 404]);
    expect(text).not.toContain("SECRET-OUTSIDE");
  }
  expect((await raw(rig, "/v1/artifacts/act-1/0/outputs/ok.txt")).text).toBe("fine");
});

it("what was quarantined is for admins only, wherever it lies [fault C3]", async () => {
  const reader = "reader-key";
  const file = join(tempDir(), "keys");
  writeFileSync(file, `reader read ${hashApiKey(reader)}\nroot admin ${hashApiKey("root-key")}\n`);
  const rig = await startApiRig({ ports: { apiKeys: await openApiKeys({ single: null, file, onProblem: () => undefined }) } });
  const paths = ["quarantine/outputs/a.txt", "quarantine~2/outputs/a.txt", "Withheld/events.jsonl", "outputs/flagged.txt"];
  for (const path of paths) await put(rig, path, "has a secret");
  await put(rig, "outputs/free.txt", "free");
  const artifacts = [
    { path: "outputs/flagged.txt", quarantined: true },
    { path: "outputs/free.txt", quarantined: false },
  ].map((one) => ({ ...one, kind: "output" as const, source: null, bytes: 4, sha256: "0".repeat(64), uri: "dir:x" }));
  await rig.store.commit(resultOf("act-1", { artifacts }));
  for (const path of paths) {
    const url = `/v1/artifacts/act-1/0/${path}`;
    expect((await rig.call(url, { key: reader })).status, path).toBe(403);
    expect((await rig.call(url, { key: "root-key" })).body).toBe("has a secret");
  }
  expect((await rig.call("/v1/artifacts/act-1/0/outputs/free.txt", { key: reader })).body).toBe("free");
});

it("ranges are read as RFC 9110 says", () => {
  expect(rangeOf("bytes=0-0", 1)).toEqual({ start: 0, end: 0 });
  expect(rangeOf("bytes=-5", 3)).toEqual({ start: 0, end: 2 });
  for (const header of [undefined, "", "bytes=-", "bytes=3-1", "bytes=a-b", "bytes=1-2, 3-4"]) expect(rangeOf(header, 10)).toBeNull();
  for (const header of ["bytes=10-", "bytes=-0", "bytes=999999999999999-"]) expect(rangeOf(header, 10)).toBe("unsatisfiable");
  expect(rangeOf("bytes=0-", 0)).toBe("unsatisfiable");
});
