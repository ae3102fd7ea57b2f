// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { serveOnLoopback } from "../../examples/stand-ins/loopback.ts";
import type { Reference, ReferenceSource } from "../../src/references/reference.ts";
import { referenceFiles, type ReferenceFiles, type ReferencePolicy } from "../../src/references/reference-files.ts";
import { openUrlCache } from "../../src/references/url-cache.ts";
import { tempDir } from "../support/temp-dir.ts";

const sha256 = (bytes: string | Buffer): string => createHash("sha256").update(bytes).digest("hex");

function setUp(policy: Partial<ReferencePolicy> = {}): { files: ReferenceFiles; again: () => ReferenceFiles; base: string; cache: string } {
  const root = tempDir();
  const [base, cache] = [join(root, "tasks"), join(root, "cache")];
  mkdirSync(base);
  const make = (): ReferenceFiles =>
    referenceFiles({ baseDir: base, allowDirs: [], allowUrlHosts: [], maxBytes: 1_000, firstPauseMs: 1, ...policy }, () =>
      openUrlCache(cache),
    );
  return { files: make(), again: make, base, cache };
}

function reference(sources: ReferenceSource[], facts: Partial<Reference> = {}): Reference {
  return { at: "reference_files[0]", name: "reference_files/a", sources, sha256: null, ...facts };
}
const file = (path: string): ReferenceSource => ({ kind: "file", path });
const link = (url: string): ReferenceSource => ({ kind: "url", url: new URL(url) });

/** A server whose answers come one after the other, the last one for ever. */
async function server(...answers: ((response: ServerResponse, request: IncomingMessage) => void)[]) {
  const seen: string[] = [];
  const started = await serveOnLoopback((request, response) => {
    answers[Math.min(seen.push(request.url ?? ""), answers.length) - 1]!(response, request);
  });
  onTestFinished(() => started.close());
  const { origin } = started;
  return { origin, host: new URL(origin).host, seen };
}
const says =
  (body: string, status = 200, headers = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body);

describe("local files that a row names", () => {
  it("are those below the task file's directory, the first source that is there", async () => {
    const { files, base } = setUp();
    mkdirSync(join(base, "reference_files"));
    writeFileSync(join(base, "reference_files/a.txt"), "local");
    const found = await files.get(reference([file("gone.txt"), file("reference_files/a.txt"), link("https://127.0.0.1/a")]));
    expect(found).toMatchObject({ sha256: sha256("local"), bytes: 5 });
  });

  it("may not lie elsewhere, by path or by link, unless their directory is allowed", async () => {
    const elsewhere = tempDir();
    writeFileSync(join(elsewhere, "secret"), "s");
    const { files, base } = setUp();
    symlinkSync(join(elsewhere, "secret"), join(base, "link"));
    for (const path of [join(elsewhere, "secret"), "link", "../cache/../../etc/passwd", "/etc/passwd"]) {
      const problem = await files.look(reference([file(path), link("https://example.org/never-asked")]));
      if (path.includes("cache")) expect(problem).toBeNull(); // it leads nowhere, so the URL counts
      else expect(problem).toMatchObject({ code: "reference_refused" });
    }
    const allowed = setUp({ allowDirs: [elsewhere] });
    expect(await allowed.files.get(reference([file(join(elsewhere, "secret"))]))).toMatchObject({ sha256: sha256("s") });
  });

  it("are refused when they are missing, too large, no files, or not those that the row means", async () => {
    const { files, base } = setUp();
    writeFileSync(join(base, "large"), "x".repeat(1_001));
    writeFileSync(join(base, "other"), "x");
    mkdirSync(join(base, "directory"));
    expect(await files.look(reference([file("gone")]))).toMatchObject({
      code: "reference_missing",
      message: expect.stringContaining("no file"),
    });
    expect(await files.look(reference([file("directory")]))).toMatchObject({ code: "reference_missing" });
    expect(await files.look(reference([file("large")]))).toMatchObject({ code: "reference_too_large" });
    expect(await files.get(reference([file("other")], { sha256: sha256("y") }))).toMatchObject({ code: "reference_differs" });
  });
});

describe("URLs that a row names", () => {
  it("are fetched once, whoever asks, also by a later process", async () => {
    const there = await server(says("bytes"));
    const { files, again, cache } = setUp({ allowUrlHosts: [there.host] });
    const wanted = reference([link(`${there.origin}/a?signature=FAKE-SECRET`)]);
    const [one, other] = await Promise.all([files.get(wanted), files.get(wanted)]);
    expect(one).toMatchObject({ sha256: sha256("bytes"), bytes: 5 });
    expect(other).toEqual(one);
    expect(await again().get(wanted)).toEqual(one);
    expect(there.seen).toHaveLength(1);
    const kept = readdirSync(cache, { recursive: true, encoding: "utf8" });
    expect(kept.filter((name) => name.startsWith("files/"))).toEqual([`files/${sha256("bytes")}`]);
    for (const name of kept.filter((one) => one.startsWith("urls/")))
      expect(readFileSync(join(cache, name), "utf8")).toBe(`${sha256("bytes")}\n`);
  });

  it("are tried again after 500, 429 and a body that was cut off", async () => {
    const cut = (response: ServerResponse): void => {
      response.writeHead(200, { "content-length": "5" });
      response.write("by", () => response.destroy());
    };
    const there = await server(says("no", 500), says("later", 429, { "retry-after": "0" }), cut, says("bytes"));
    const { files, cache } = setUp({ allowUrlHosts: [there.host] });
    expect(await files.get(reference([link(`${there.origin}/a`)]))).toMatchObject({ sha256: sha256("bytes") });
    expect(there.seen).toHaveLength(4);
    expect(readdirSync(join(cache, "files"))).toEqual([sha256("bytes")]);
  });

  it("are given up after six tries, at once after a 404, and leave nothing; the message holds no query", async () => {
    const [broken, gone] = [await server(says("no", 503)), await server(says("no", 404))];
    const { files, cache } = setUp({ allowUrlHosts: [broken.host, gone.host] });
    const first = await files.get(reference([link(`${broken.origin}/a?key=FAKE-SECRET`)]));
    expect(first).toMatchObject({ code: "reference_missing", message: `${broken.origin}/a could not be fetched: HTTP 503, after 6 tries` });
    const second = await files.get(reference([link(`${gone.origin}/a`)]));
    expect(second).toMatchObject({ code: "reference_missing", message: `${gone.origin}/a could not be fetched: HTTP 404` });
    expect([broken.seen.length, gone.seen.length]).toEqual([6, 1]);
    expect(readdirSync(join(cache, "files"))).toEqual([]);
  });

  it("are cut off where they grow too large, announced or not", async () => {
    const there = await server(says("x", 200, { "content-length": "2000" }), (response) => {
      response.writeHead(200);
      for (let part = 0; part < 3; part++) response.write("x".repeat(500));
      response.end();
    });
    const { files, cache } = setUp({ allowUrlHosts: [there.host] });
    expect(await files.get(reference([link(`${there.origin}/announced`)]))).toMatchObject({ code: "reference_too_large" });
    expect(await files.get(reference([link(`${there.origin}/silent`)]))).toMatchObject({ code: "reference_too_large" });
    expect(readdirSync(join(cache, "files"))).toEqual([]);
  });

  it("are fetched anew when the row means other bytes than those kept, and refused when they are others still", async () => {
    const there = await server(says("old"), says("new"), says("old"));
    const { files } = setUp({ allowUrlHosts: [there.host] });
    const url = link(`${there.origin}/a`);
    expect(await files.get(reference([url]))).toMatchObject({ sha256: sha256("old") });
    expect(await files.get(reference([url], { sha256: sha256("new") }))).toMatchObject({ sha256: sha256("new") });
    expect(await files.get(reference([url], { sha256: sha256("newest") }))).toMatchObject({ code: "reference_differs" });
    expect(there.seen).toHaveLength(3);
  });

  it.each([
    ["http://example.org/a", "it is not https"],
    ["https://user:pass@example.org/a", "it holds credentials"],
    ["https://127.0.0.1/a", "it is an address that is not public"],
    ["https://0x7f.1/a", "it is an address that is not public"],
    ["https://[::ffff:10.0.0.1]/a", "it is an address that is not public"],
    ["https://169.254.169.254/latest", "it is an address that is not public"],
    ["https://[fd00::1]/a", "it is an address that is not public"],
  ])("are refused before anything is asked: %s", async (url, why) => {
    const { files, cache } = setUp();
    expect(await files.look(reference([link(url)]))).toMatchObject({ code: "reference_refused", message: expect.stringContaining(why) });
    expect(existsSync(cache)).toBe(false);
  });

  it("are refused when a name leads to an address that is not public, or a redirect does", async () => {
    const inner = await server(says("secret"));
    const outer = await server((response) => void response.writeHead(302, { location: `${inner.origin}/b` }).end());
    const { files } = setUp({ allowUrlHosts: [outer.host] });
    expect(await files.get(reference([link(`${outer.origin}/a`)]))).toMatchObject({ code: "reference_refused" });
    expect(await files.get(reference([link(`https://localhost:${new URL(inner.origin).port}/a`)]))).toMatchObject({
      code: "reference_refused",
      message: expect.stringContaining("leads to an address that is not public"),
    });
    expect(inner.seen).toEqual([]);
  });

  it("are given up at once when nobody wants them any more", async () => {
    const stop = new AbortController();
    const reason = new Error("stopped");
    const there = await server(says("busy", 503, { "retry-after": "30" }), () => undefined);
    const { files, cache } = setUp({ allowUrlHosts: [there.host], signal: stop.signal });
    const waiting = files.get(reference([link(`${there.origin}/busy`)]));
    await expect.poll(() => there.seen.length).toBe(1);
    const hanging = files.get(reference([link(`${there.origin}/hangs`)]));
    await expect.poll(() => there.seen.length).toBe(2);
    stop.abort(reason);
    await Promise.all([waiting, hanging].map((one) => expect(one).rejects.toBe(reason)));
    expect(readdirSync(join(cache, "files"))).toEqual([]);
  });

  it("may redirect, a few times", async () => {
    const there = await server((response, { url }) =>
      url === "/b" ? says("bytes")(response) : void response.writeHead(302, { location: url === "/loop" ? "/loop" : "/b" }).end(),
    );
    const { files } = setUp({ allowUrlHosts: [there.host] });
    expect(await files.get(reference([link(`${there.origin}/a`)]))).toMatchObject({ sha256: sha256("bytes") });
    expect(await files.get(reference([link(`${there.origin}/loop`)]))).toMatchObject({ message: expect.stringContaining("redirects") });
  });
});
