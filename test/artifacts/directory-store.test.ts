// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import { safeName } from "../../src/contract/identity.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";

let directory: string;
let root: string;
let store: ArtifactStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "rollcall-store-"));
  root = join(directory, "artifacts");
  store = await openDirectoryStore(root);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const OUTPUT = { kind: "output", source: "/workspace/x", quarantined: false } as const;
const EVIDENCE = { kind: "evidence", source: null, quarantined: false } as const;

describe("a directory store", () => {
  test("keeps its id; a second store has another", async () => {
    expect((await openDirectoryStore(root)).id).toBe(store.id);
    expect((await openDirectoryStore(join(directory, "other"))).id).not.toBe(store.id);
  });

  test("gets one id when ten workers open it at once", async () => {
    const shared = join(directory, "shared");
    const stores = await Promise.all(Array.from({ length: 10 }, () => openDirectoryStore(shared)));
    expect(new Set(stores.map(({ id }) => id)).size).toBe(1);
  });

  test("a path that cannot be written is refused, naming it", async () => {
    await writeFile(join(directory, "file"), "");
    await expect(openDirectoryStore(join(directory, "file"))).rejects.toMatchObject({ code: "store_unwritable" });
    await expect(openDirectoryStore("/sys/rollcall")).rejects.toMatchObject({
      code: "store_unwritable",
      message: expect.stringContaining("/sys/rollcall"),
    });
  });

  test("a directory whose _store.json is not ours is refused", async () => {
    await mkdir(join(directory, "foreign"));
    await writeFile(join(directory, "foreign/_store.json"), "hello");
    await expect(openDirectoryStore(join(directory, "foreign"))).rejects.toMatchObject({ code: "store_damaged" });
  });
});

describe("an artifact", () => {
  test("is byte-identical, hashed on the way, and has an address relative to the store", async () => {
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256));
    const artifact = await store.put("act-1", 2, "outputs/a b/ü\n.bin", Readable.from([bytes.subarray(0, 7), bytes.subarray(7)]), OUTPUT);
    expect(artifact).toEqual({
      path: "outputs/a b/ü\n.bin",
      uri: "dir:act-1/attempt-2/outputs/a%20b/%C3%BC%0A.bin",
      bytes: 300_000,
      sha256: createHash("sha256").update(bytes).digest("hex"),
      ...OUTPUT,
    });
    expect(bytes.equals(await readFile(join(root, "act-1/attempt-2/outputs/a b/ü\n.bin")))).toBe(true);
  });

  test("is private when it is evidence or quarantined [C4]", async () => {
    await store.put("act-1", 0, "e", Readable.from([Buffer.from("x")]), EVIDENCE);
    await store.put("act-1", 0, "q", Readable.from([Buffer.from("x")]), { ...OUTPUT, quarantined: true });
    await store.put("act-1", 0, "o", Readable.from([Buffer.from("x")]), OUTPUT);
    const modes = await Promise.all(["e", "q", "o"].map(async (name) => (await stat(join(root, "act-1/attempt-0", name))).mode & 0o777));
    expect(modes).toEqual([0o600, 0o600, 0o644 & ~process.umask()]);
  });

  test("never replaces one that is there, and ends the stream it was given", async () => {
    await store.put("act-1", 0, "x", Readable.from([Buffer.from("first")]), OUTPUT);
    const body = new PassThrough();
    await expect(store.put("act-1", 0, "x", body, OUTPUT)).rejects.toMatchObject({ code: "artifact_exists" });
    expect(body.destroyed).toBe(true);
    expect(await readFile(join(root, "act-1/attempt-0/x"), "utf8")).toBe("first");
  });

  test("leaves nothing when its stream fails", async () => {
    const body = new PassThrough();
    body.write("half");
    const put = store.put("act-1", 0, "x", body, OUTPUT);
    await vi.waitFor(async () => expect((await stat(join(root, "act-1/attempt-0/x"))).size).toBe(4));
    body.destroy(new Error("gone"));
    await expect(put).rejects.toThrow("gone");
    expect(await readdir(join(root, "act-1/attempt-0"))).toEqual([]);
  });

  test.each(["", "..", "../x", "a/../../x", "/etc/x", "a//b", "./a", "a\0b"])("the path %j is refused", async (path) => {
    await expect(store.put("act-1", 0, path, Readable.from([]), OUTPUT)).rejects.toMatchObject({ code: "bad_path" });
  });

  test.each(["", "..", "../x", "a/b", "_store.json", "a\0"])("the activation id %j is refused", async (id) => {
    await expect(store.put(id, 0, "x", Readable.from([]), OUTPUT)).rejects.toMatchObject({ code: "bad_path" });
    await expect(store.putAttempt(id, attemptOf(0))).rejects.toMatchObject({ code: "bad_path" });
  });

  test("an activation may be called like the store's own file", async () => {
    expect((await store.commit(resultOf("store.json"))).committed).toBe(true);
  });

  test.each([
    "../../x",
    "/abs",
    "a/b",
    ".",
    "..",
    "",
    "-rf",
    "CON",
    "a:b",
    "x".repeat(300),
    "é",
    "e\u0301",
    "\u202e",
    "\0",
    "x-a1",
    "__proto__",
  ])("of the task id %j stays below the store [E12]", async (taskId) => {
    await store.put(`act-run-${safeName(taskId)}`, 0, "x", Readable.from([Buffer.from("x")]), OUTPUT);
    const files = await readdir(directory, { recursive: true });
    expect(files.filter((file) => file.endsWith("/x"))).toEqual([`artifacts/act-run-${safeName(taskId)}/attempt-0/x`]);
  });
});

describe("attempts", () => {
  test("come back oldest first, without those that never said how they ended", async () => {
    for (const number of [10, 2, 0]) await store.putAttempt("act-1", attemptOf(number));
    await store.put("act-1", 1, "events.jsonl", Readable.from([Buffer.from("x")]), EVIDENCE);
    expect((await store.readAttempts("act-1")).map(({ attempt }) => attempt)).toEqual([0, 2, 10]);
    expect(await store.readAttempts("act-2")).toEqual([]);
  });

  test("are saved once: the same again is fine, another is refused", async () => {
    await store.putAttempt("act-1", attemptOf(0));
    await store.putAttempt("act-1", attemptOf(0));
    await expect(store.putAttempt("act-1", attemptOf(0, { status: "completed" }))).rejects.toMatchObject({ code: "attempt_exists" });
    expect((await store.readAttempts("act-1"))[0]?.status).toBe("failed");
  });
});

describe("the end of an activation", () => {
  test("is there once; who comes second is told what stands", async () => {
    expect(await store.readCommit("act-1")).toBeNull();
    expect(await store.commit(resultOf("act-1"))).toEqual({ committed: true, result: resultOf("act-1") });
    const second = await store.commit(resultOf("act-1", { status: "cancelled" }));
    expect(second).toEqual({ committed: false, result: resultOf("act-1") });
    expect(await store.readCommit("act-1")).toEqual(resultOf("act-1"));
  });

  test("is the same for twenty that commit at once", async () => {
    const stores = await Promise.all(Array.from({ length: 20 }, () => openDirectoryStore(root)));
    const ends = await Promise.all(stores.map((one, index) => one.commit(resultOf("act-1", { metadata: { by: String(index) } }))));
    expect(ends.filter(({ committed }) => committed)).toHaveLength(1);
    expect(new Set(ends.map(({ result }) => result.metadata["by"])).size).toBe(1);
    expect(await readdir(join(root, "act-1"))).toEqual(["result.json"]);
  });

  test("of an earlier generation is kept beside the new one", async () => {
    await store.commit(resultOf("act-1", { status: "failed" }));
    await store.setAside("act-1", 0);
    await store.setAside("act-1", 0);
    expect(await store.readCommit("act-1")).toBeNull();
    expect((await store.commit(resultOf("act-1", { generation: 1 }))).committed).toBe(true);
    await store.setAside("act-1", 0); // late, and about what was set aside long ago
    expect((await store.readCommit("act-1"))?.generation).toBe(1);
    expect(JSON.parse(await readFile(join(root, "act-1/result.g0.json"), "utf8"))).toMatchObject({ status: "failed", generation: 0 });
  });

  test("makes room by itself when the earlier one was not set aside", async () => {
    await store.commit(resultOf("act-1", { status: "failed" }));
    expect((await store.commit(resultOf("act-1", { generation: 1 }))).committed).toBe(true);
    expect((await readdir(join(root, "act-1"))).sort()).toEqual(["result.g0.json", "result.json"]);
  });

  test("does not come from a worker of a generation that ended before", async () => {
    await store.commit(resultOf("act-1", { status: "failed" }));
    await store.setAside("act-1", 0);
    const late = await store.commit(resultOf("act-1", { status: "completed" }));
    expect(late).toMatchObject({ committed: false, result: { status: "failed" } });
    expect(await store.readCommit("act-1")).toBeNull();
  });

  test("is listed, and nothing else is", async () => {
    await store.commit(resultOf("act-1"));
    await store.commit(resultOf("act-2"));
    await store.putAttempt("act-3", attemptOf(0));
    await mkdir(join(root, "0-not-an-id"));
    await writeFile(join(root, "notes"), "");
    const ended: string[] = [];
    for await (const id of store.listEnded()) ended.push(id);
    expect(ended.sort()).toEqual(["act-1", "act-2"]);
  });

  test("that somebody damaged is said, not taken for no end", async () => {
    await store.commit(resultOf("act-1"));
    await chmod(join(root, "act-1/result.json"), 0o644);
    await writeFile(join(root, "act-1/result.json"), '{"half');
    await expect(store.readCommit("act-1")).rejects.toMatchObject({ code: "store_damaged" });
  });
});
