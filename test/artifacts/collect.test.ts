// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { appendFile, chmod, link, mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { collect, type CollectOptions } from "../../src/artifacts/collect.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import { buildSecretSet, emptySecretSet } from "../../src/redact/index.ts";

const TOKEN = 'FAKE-tok "quoted" \\ 100% 7f3a9c1e';
const SECRETS = buildSecretSet([{ name: "Authorization", value: TOKEN }]);

let directory: string;
let workdir: string;
let store: ArtifactStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "rollcall-collect-"));
  workdir = join(directory, "workdir");
  await mkdir(workdir);
  store = await openDirectoryStore(join(directory, "store"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function place(files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(workdir, path)), { recursive: true });
    await writeFile(join(workdir, path), content);
  }
}

async function run(
  outputs: Partial<CollectOptions["outputs"]>,
  options: Partial<CollectOptions> = {},
): Promise<{
  paths: string[];
  skipped: Record<string, string>;
  quarantined: string[];
  artifacts: Awaited<ReturnType<typeof collect>>["artifacts"];
}> {
  const { artifacts, gaps } = await collect({
    store,
    activation_id: "act-1",
    attempt: 0,
    workdir: { inside: "/workspace", outside: workdir },
    outputs: { paths: [], max_file_mb: 100, max_total_mb: 500, ...outputs },
    handedIn: [],
    secrets: emptySecretSet,
    signal: new AbortController().signal,
    ...options,
  });
  const details = (code: string): { path: string; why: string }[] =>
    gaps.filter((gap) => gap.code === code).map((gap) => JSON.parse(gap.detail ?? "") as { path: string; why: string });
  return {
    artifacts,
    paths: artifacts.map(({ path }) => path),
    skipped: Object.fromEntries(details("artifact_skipped").map(({ path, why }) => [path, why])),
    quarantined: details("artifact_quarantined").map(({ path }) => path),
  };
}

const stored = (path: string): Promise<Buffer> => readFile(join(directory, "store/act-1/attempt-0", path));

describe("collecting", () => {
  test("copies matched and handed-in files byte for byte, each once", async () => {
    const bytes = randomBytes(300_000);
    await place({ "out/a.bin": bytes, "out/b.txt": "b", "notes.md": "n", "left.txt": "l" });
    const { artifacts, skipped } = await run({ paths: ["out"] }, { handedIn: ["/workspace/out/a.bin", "notes.md"] });
    expect(artifacts.map(({ path, kind, source }) => [path, kind, source])).toEqual([
      ["outputs/out/a.bin", "submission", "/workspace/out/a.bin"],
      ["outputs/notes.md", "submission", "/workspace/notes.md"],
      ["outputs/out/b.txt", "output", "/workspace/out/b.txt"],
    ]);
    expect(artifacts[0]?.sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
    expect(bytes.equals(await stored("outputs/out/a.bin"))).toBe(true);
    expect(skipped).toEqual({});
  });

  test("keeps equal basenames, and names that differ in case or Unicode form only, apart", async () => {
    await place({ "a/report.pdf": "1", "b/report.pdf": "2", "b/Report.pdf": "3", "\u00e9": "4", "e\u0301": "5" });
    const { paths } = await run({ paths: ["**"] });
    expect(paths).toHaveLength(5);
    expect(new Set(paths.map((path) => path.normalize("NFC").toLowerCase())).size).toBe(5);
    const contents = await Promise.all(paths.map(async (path) => (await stored(path)).toString()));
    expect(contents.sort()).toEqual(["1", "2", "3", "4", "5"]);
  });

  test("records a handed-in path that is missing, a directory, or outside, each by itself", async () => {
    await place({ "dir/x": "x" });
    const { paths, skipped } = await run(
      {},
      {
        handedIn: [
          "/workspace/none.docx",
          "dir",
          "/etc/passwd",
          "../up",
          "dir/../../up",
          "",
          "/workspace",
          "a\0b",
          "dir/../dir/./x",
          "dir/x/y",
        ],
      },
    );
    expect(paths).toEqual(["outputs/dir/x"]);
    expect(skipped).toEqual({
      "none.docx": "not found",
      dir: "a directory",
      "/etc/passwd": "not a path below /workspace",
      "../up": "not a path below /workspace",
      "dir/../../up": "not a path below /workspace",
      "": "not a path below /workspace",
      "/workspace": "not a path below /workspace",
      "a\0b": "not a path below /workspace",
      "dir/x/y": "not found",
    });
  });

  test("follows no link, wherever it stands in the path", async () => {
    await place({ "real/a.txt": "a" });
    await writeFile(join(directory, "outside.txt"), "secret of the host");
    await symlink(join(directory, "outside.txt"), join(workdir, "out-link.txt"));
    await symlink("real/a.txt", join(workdir, "in-link.txt"));
    await symlink(directory, join(workdir, "up"));
    await symlink("real", join(workdir, "inner"));
    const { paths, skipped } = await run(
      { paths: ["**", "up/**", "up/outside.txt"] },
      { handedIn: ["up/outside.txt", "inner/a.txt", "out-link.txt"] },
    );
    expect(paths).toEqual(["outputs/real/a.txt"]);
    expect(skipped).toEqual({
      "up/outside.txt": "reached through a symbolic link",
      "inner/a.txt": "reached through a symbolic link",
      "out-link.txt": "a symbolic link",
      "in-link.txt": "a symbolic link",
      up: "a symbolic link",
      inner: "a symbolic link",
    });
  });

  test("does not follow a workdir that was replaced by a link", async () => {
    await rm(workdir, { recursive: true });
    await symlink("/etc", workdir);
    const { paths, skipped } = await run({ paths: ["**"] }, { handedIn: ["passwd"] });
    expect(paths).toEqual([]);
    expect(skipped).toEqual({ "/workspace": "the workdir is not there" });
  });

  test("leaves FIFOs and sockets alone, and does not wait for them", async () => {
    execFileSync("mkfifo", [join(workdir, "fifo")]);
    const server = createServer().listen(join(workdir, "socket"));
    await place({ "a.txt": "a" });
    const { paths, skipped } = await run({ paths: ["**"] }, { handedIn: ["fifo", "socket"] });
    server.close();
    expect(paths).toEqual(["outputs/a.txt"]);
    expect(skipped).toEqual({ fifo: "not a regular file", socket: "not a regular file" });
  });

  test.each(["../*", "/etc/*", "a/../../*", "{x,..}/*", "\\.\\./*"])(
    "a pattern that leaves the workdir takes nothing: %s",
    async (pattern) => {
      await writeFile(join(directory, "outside.txt"), "x");
      const { paths, skipped } = await run({ paths: [pattern] });
      expect(paths).toEqual([]);
      expect(Object.keys(skipped)).toEqual([pattern]);
    },
  );

  test("understands patterns written with the inside workdir", async () => {
    await place({ "out/a.txt": "a" });
    expect((await run({ paths: ["/workspace/out/*.txt"] })).paths).toEqual(["outputs/out/a.txt"]);
  });

  test("keeps to the limits, per file and in total, and takes what still fits", async () => {
    await place({
      "a.bin": Buffer.alloc(500_000),
      "b.bin": Buffer.alloc(2_000_000),
      "c.bin": Buffer.alloc(600_000),
      "d.bin": Buffer.alloc(400_000),
    });
    const { paths, skipped } = await run({ paths: ["*"], max_file_mb: 1, max_total_mb: 0.9 });
    expect(paths).toEqual(["outputs/a.bin", "outputs/d.bin"]);
    expect(skipped).toEqual({ "b.bin": "over 0.9 MB in total", "c.bin": "over 0.9 MB in total" });
    expect((await run({ paths: ["b.bin"], max_file_mb: 1 }, { attempt: 1 })).skipped).toEqual({ "b.bin": "over 1 MB" });
  });

  test("takes nothing of a sparse file of a terabyte", async () => {
    await place({ huge: "" });
    await truncate(join(workdir, "huge"), 1e12);
    expect((await run({ paths: ["huge"] })).skipped).toEqual({ huge: "over 100 MB" });
  });

  test("survives hostile names", async () => {
    const names = ["new\nline", "-rf", "a\u202eb", "x".repeat(255), "%2e%2e", "..."];
    await place(Object.fromEntries(names.map((name) => [name, name])));
    await writeFile(Buffer.concat([Buffer.from(`${workdir}/bad-`), Buffer.from([0xff, 0xfe])]), "x");
    const { paths, skipped } = await run({ paths: ["*", ".*"] }, { handedIn: ["half \ud800"] });
    expect(paths.sort()).toEqual(names.map((name) => `outputs/${name}`).sort());
    expect(Object.values(skipped).sort()).toEqual(["its name is not UTF-8", "not found"]);
    expect(await readdir(join(directory, "store/act-1/attempt-0"))).toEqual(["outputs"]);
  });

  test("a file that holds a secret is kept apart, privately, and marked; the others are not [C4]", async () => {
    await place({
      "out/raw.txt": `Authorization: ${TOKEN}`,
      "out/escaped.json": JSON.stringify({ header: TOKEN }),
      "out/large.bin": Buffer.concat([randomBytes(65_530), Buffer.from(TOKEN), randomBytes(100_000)]),
      "out/fine.txt": "FAKE-tok",
    });
    const { artifacts, quarantined } = await run({ paths: ["out"] }, { secrets: SECRETS });
    expect(artifacts.map(({ path, quarantined }) => [path, quarantined])).toEqual([
      ["quarantine/out/escaped.json", true],
      ["outputs/out/fine.txt", false],
      ["quarantine/out/large.bin", true],
      ["quarantine/out/raw.txt", true],
    ]);
    expect(quarantined).toHaveLength(3);
    expect((await stored("quarantine/out/raw.txt")).toString()).toContain(TOKEN);
    // The same without the secret: nothing is quarantined, so the test above sees the scan and not something else.
    expect((await run({ paths: ["out"] }, { attempt: 1 })).quarantined).toEqual([]);
  });

  test("a secret in a file's name shows neither in the store nor in the result [C4]", async () => {
    const token = "FAKE-tok-77aa88bb99cc";
    await place({ [`${token}/a.txt`]: "a", [`b-${token}`]: "b" });
    await symlink("/etc/passwd", join(workdir, `link-${token}`));
    const secrets = buildSecretSet([{ value: token }]);
    const { artifacts, skipped } = await run({ paths: ["**"] }, { secrets, handedIn: [`missing-${token}`] });
    expect(artifacts).toHaveLength(2);
    expect(Object.keys(skipped)).toHaveLength(2);
    expect(JSON.stringify([artifacts, skipped])).not.toContain(token);
    expect((await readdir(join(directory, "store"), { recursive: true })).join()).not.toContain(token);
  });

  test("a file that grows meanwhile is copied as far as it was searched", async () => {
    await place({ "log.txt": "x".repeat(200_000) });
    const growing = {
      ...store,
      put: async (...args: Parameters<ArtifactStore["put"]>) => (await appendFile(join(workdir, "log.txt"), TOKEN), store.put(...args)),
    };
    const { artifacts } = await run({ paths: ["*"] }, { secrets: SECRETS, store: growing });
    expect(artifacts).toMatchObject([{ bytes: 200_000, quarantined: false }]);
  });

  test("a file that is rewritten between search and copy is marked", async () => {
    await place({ "log.txt": "x".repeat(200_000) });
    const rewriting = {
      ...store,
      put: async (...args: Parameters<ArtifactStore["put"]>) => (await writeFile(join(workdir, "log.txt"), TOKEN), store.put(...args)),
    };
    const { artifacts, quarantined } = await run({ paths: ["*"] }, { secrets: SECRETS, store: rewriting });
    expect(artifacts).toMatchObject([{ quarantined: true }]);
    expect(quarantined).toEqual(["outputs/log.txt"]);
  });

  test("an aborted signal ends it with what there is, and says so", async () => {
    await place({ "a.txt": "a", "b.txt": "b", "c.txt": "c" });
    const stop = new AbortController();
    const stopping = {
      ...store,
      put: async (...args: Parameters<ArtifactStore["put"]>) => {
        const done = await store.put(...args);
        stop.abort({ kind: "shutdown" });
        return done;
      },
    };
    const { paths, skipped } = await run({ paths: ["*"] }, { store: stopping, signal: stop.signal });
    expect(paths).toEqual(["outputs/a.txt"]);
    expect(skipped).toEqual({ "b.txt": "the time for collecting is over", "c.txt": "the time for collecting is over" });
  });

  test("aborted in the middle of a file, nothing of it is left", async () => {
    await place({ "a.bin": Buffer.alloc(5_000_000) });
    const stop = new AbortController();
    const stopping = {
      ...store,
      put: (...args: Parameters<ArtifactStore["put"]>) => {
        stop.abort(new Error("over"));
        return store.put(...args);
      },
    };
    expect((await run({ paths: ["*"] }, { store: stopping, signal: stop.signal })).skipped).toEqual({
      "a.bin": "the time for collecting is over",
    });
    expect(await readdir(join(directory, "store/act-1/attempt-0/outputs"))).toEqual([]);
  });

  test("the number of files and of gaps is bounded", async () => {
    await place(Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`out/${String(index).padStart(2, "0")}`, "x"])));
    for (let index = 0; index < 130; index++) await symlink("/etc/passwd", join(workdir, `link-${index}`));
    const { artifacts, skipped } = await run({ paths: ["out"] }, { maxFiles: 10, handedIn: ["out/29"] });
    expect(artifacts).toHaveLength(10);
    expect(Object.values(skipped)).toContain("more than 10 files match");
    expect(Object.keys((await run({ paths: ["link-*"] })).skipped)).toHaveLength(101);
  });

  test("a store that cannot be written to is an error, not a skipped file", async () => {
    await place({ "a.txt": "a" });
    const full = { ...store, put: () => Promise.reject(Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" })) };
    await expect(run({ paths: ["*"] }, { store: full })).rejects.toThrow("no space left");
  });

  test.skipIf(process.getuid?.() === 0)("a file that this user may not read is recorded", async () => {
    await place({ "a.txt": "a" });
    await chmod(join(workdir, "a.txt"), 0);
    expect((await run({ paths: ["*"] })).skipped).toEqual({ "a.txt": "not readable" });
  });

  test("30,000 files in the workdir do not hold the worker up", async () => {
    await place({ "flat/wanted.pdf": "x", "seed-0": "", "seed-1": "" });
    for (let index = 0; index < 30_000; index += 1_000) {
      await Promise.all(
        Array.from({ length: 1_000 }, (_, each) => link(join(workdir, `seed-${each % 2}`), join(workdir, `flat/file-${index + each}.txt`))),
      );
    }
    // Turns of the event loop, not milliseconds: those depend on what else the machine does.
    let turns = 0;
    let turning = setImmediate(function turn() {
      turns += 1;
      turning = setImmediate(turn);
    });
    const { paths } = await run({ paths: ["**/*.pdf"] });
    clearImmediate(turning);
    expect(paths).toEqual(["outputs/flat/wanted.pdf"]);
    expect(turns).toBeGreaterThan(100);
  });
});
