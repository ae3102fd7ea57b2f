// SPDX-License-Identifier: Apache-2.0
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { openArtifactStore } from "../../src/artifacts/open-store.ts";
import { describeStore } from "./store-conformance.ts";

let directory: string;
let root: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "rollcall-store-"));
  root = join(directory, "artifacts");
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const OUTPUT = { kind: "output", source: "/workspace/x", quarantined: false } as const;
const EVIDENCE = { kind: "evidence", source: null, quarantined: false } as const;

describeStore("a directory", () =>
  Promise.resolve({
    open: () => openDirectoryStore(root),
    openOther: () => openArtifactStore(`dir:${join(directory, "other")}`),
    async paths() {
      const entries = await readdir(directory, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
      return files.map((file) => (file.startsWith(`${root}/`) ? file.slice(root.length + 1) : file)).sort();
    },
    async plant(path: string, text: string) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    },
    uriRoot: "dir:",
  }),
);

describe("a directory store", () => {
  test("a path that cannot be written is refused, naming it", async () => {
    await writeFile(join(directory, "file"), "");
    await expect(openDirectoryStore(join(directory, "file"))).rejects.toMatchObject({ code: "store_unwritable" });
    await expect(openDirectoryStore("/sys/rollcall")).rejects.toMatchObject({
      code: "store_unwritable",
      message: expect.stringContaining("/sys/rollcall") as string,
    });
  });

  test("keeps evidence and quarantined files private [C4]", async () => {
    const store = await openDirectoryStore(root);
    await store.put("act-1", 0, "e", Readable.from([Buffer.from("x")]), EVIDENCE);
    await store.put("act-1", 0, "q", Readable.from([Buffer.from("x")]), { ...OUTPUT, quarantined: true });
    await store.put("act-1", 0, "o", Readable.from([Buffer.from("x")]), OUTPUT);
    const modes = await Promise.all(["e", "q", "o"].map(async (name) => (await stat(join(root, "act-1/attempt-0", name))).mode & 0o777));
    expect(modes).toEqual([0o600, 0o600, 0o644 & ~process.umask()]);
  });

  test("has what came so far while a stream still runs, and nothing of it once that failed", async () => {
    const store = await openDirectoryStore(root);
    const body = new PassThrough();
    body.write("half");
    const put = store.put("act-1", 0, "x", body, OUTPUT);
    await vi.waitFor(async () => expect((await stat(join(root, "act-1/attempt-0/x"))).size).toBe(4));
    body.destroy(new Error("gone"));
    await expect(put).rejects.toThrow("gone");
    expect(await readdir(join(root, "act-1/attempt-0"))).toEqual([]);
  });
});
