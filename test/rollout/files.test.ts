// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import type { Failure } from "../../src/contract/failure.ts";
import { openJsonLines } from "../../src/rollout/json-lines.ts";
import { decodeLine, readLines } from "../../src/rollout/lines.ts";
import { openOutputDir, requireSameRun, type Manifest } from "../../src/rollout/output-dir.ts";
import { openResultsFiles } from "../../src/rollout/results-files.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { tempDir } from "../support/temp-dir.ts";

const FAILURE: Failure = {
  failure_kind: "agent_run_error",
  cause_code: "exit_code",
  server_names: [],
  stage: "agent",
  failure_reason: "Codex exited with code 1",
  terminal: false,
  status_code: 502,
};

function readJsonLines(path: string): unknown[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown);
}

async function linesOf(text: string | Buffer, maxBytes: number) {
  const path = join(tempDir(), "lines");
  writeFileSync(path, text);
  const lines = [];
  for await (const line of readLines(path, maxBytes)) lines.push({ ...line, bytes: line.bytes.toString() });
  return lines;
}

describe("readLines", () => {
  it("answers each line with its place, the last one also without a line break", async () => {
    expect(await linesOf("ab\n\ncdé", 100)).toEqual([
      { number: 1, offset: 0, length: 2, bytes: "ab", tooLong: false, ended: true },
      { number: 2, offset: 3, length: 0, bytes: "", tooLong: false, ended: true },
      { number: 3, offset: 4, length: 4, bytes: "cdé", tooLong: false, ended: false },
    ]);
  });

  it("keeps only the beginning of a line over the limit and goes on behind it, also over many chunks", async () => {
    const lines = await linesOf(`${"x".repeat(1_000_000)}\nab\n`, 10);
    expect(lines).toMatchObject([
      { length: 1_000_000, bytes: "x".repeat(10), tooLong: true },
      { number: 2, offset: 1_000_001, bytes: "ab", tooLong: false },
    ]);
  });

  it("does not break characters that lie over a chunk's edge", async () => {
    const text = `${"a".repeat(256 * 1024 - 1)}😀`;
    expect((await linesOf(text, 1_000_000))[0]?.bytes).toBe(text);
  });

  it("has no text for bytes that are not UTF-8", () => {
    expect(decodeLine(Buffer.from([0x61, 0xff]))).toBeNull();
  });
});

describe("openJsonLines", () => {
  it("cuts a torn last line off, says so, and appends behind the last whole one", async () => {
    const path = join(tempDir(), "f.jsonl");
    writeFileSync(path, '{"n":1}\n{"n":2}\n{"n":3,"te');
    const seen: unknown[] = [];
    const file = await openJsonLines(path, (value) => seen.push(value));
    expect(file.cutBytes).toBe(10);
    await file.append([{ n: 4 }]);
    await file.close();
    expect(seen).toEqual([{ n: 1 }, { n: 2 }]);
    expect(readJsonLines(path)).toEqual([{ n: 1 }, { n: 2 }, { n: 4 }]);
  });

  it("names lines that are no JSON and leaves them alone", async () => {
    const path = join(tempDir(), "f.jsonl");
    writeFileSync(path, '{"n":1}\noops\n{"n":2}\n');
    const file = await openJsonLines(path, () => undefined);
    await file.close();
    expect(file).toMatchObject({ badLines: [2], cutBytes: 0 });
    expect(readFileSync(path, "utf8")).toContain("oops");
  });

  it("keeps lines whole when many are appended at once", async () => {
    const path = join(tempDir(), "f.jsonl");
    const file = await openJsonLines(path, () => undefined);
    await Promise.all(Array.from({ length: 200 }, (_, n) => file.append([{ n, text: "x".repeat(5_000) }])));
    await file.close();
    expect(readJsonLines(path)).toHaveLength(200);
  });
});

describe("openResultsFiles", () => {
  function paths(): { results: string; failures: string } {
    const root = tempDir();
    return { results: join(root, "results.jsonl"), failures: join(root, "failures.jsonl") };
  }

  it("records a result once per generation; the last line per id counts", async () => {
    const at = paths();
    const files = await openResultsFiles(at);
    expect(await files.take(resultOf("act-1", { status: "failed", failure: FAILURE }))).toBe(true);
    expect(await files.take(resultOf("act-1", { status: "failed", failure: FAILURE }))).toBe(false);
    const twice = await Promise.all([1, 1].map((generation) => files.take(resultOf("act-1", { generation }))));
    expect(twice).toEqual([true, false]);
    await files.close();
    expect(readJsonLines(at.results)).toHaveLength(2);
    const again = await openResultsFiles(at);
    expect(again.recorded.get("act-1")).toMatchObject({ status: "completed", generation: 1 });
    await again.close();
  });

  it("writes one line per failed attempt, with its observations, also after a crash between the two files [R21]", async () => {
    const at = paths();
    const result = resultOf("act-1", { attempts: [attemptOf(0, { failure: FAILURE }), attemptOf(1, { status: "completed" })] });
    let files = await openResultsFiles(at);
    await files.take(result);
    await files.close();
    truncateSync(at.results, 0); // as if the crash came before the append to results.jsonl
    files = await openResultsFiles(at);
    await files.take(result);
    await files.close();
    expect(readJsonLines(at.results)).toHaveLength(1);
    expect(readJsonLines(at.failures)).toEqual([
      expect.objectContaining({
        activation_id: "act-1",
        attempt: 0,
        failure: FAILURE,
        observations: { source: "codex", records: [], gaps: [] },
      }),
    ]);
  });

  it("says what it cut off, and lets a result be taken again whose line was torn", async () => {
    const at = paths();
    let files = await openResultsFiles(at);
    await files.take(resultOf("act-1"));
    await files.take(resultOf("act-2"));
    await files.close();
    truncateSync(at.results, statSync(at.results).size - 5);
    files = await openResultsFiles(at);
    expect(files.remarks).toEqual([expect.stringMatching(/results\.jsonl: a torn last line .* was cut off/)]);
    expect([...files.recorded.keys()]).toEqual(["act-1"]);
    expect(await files.take(resultOf("act-2"))).toBe(true);
    await files.close();
    expect(readJsonLines(at.results)).toHaveLength(2);
  });
});

describe("openOutputDir", () => {
  it("makes the directory, and takes it away again when nothing was written", async () => {
    const path = join(tempDir(), "a", "out");
    const out = await openOutputDir(path);
    expect(readdirSync(path)).toEqual([".lock"]);
    await out.close();
    expect(existsSync(path)).toBe(false);
  });

  it("names the live process that holds it", async () => {
    const path = tempDir();
    const out = await openOutputDir(path);
    await expect(openOutputDir(path)).rejects.toMatchObject({
      code: "out_locked",
      exitCode: 2,
      message: expect.stringContaining(`process ${process.pid} `) as string,
    });
    await out.close();
    await (await openOutputDir(path)).close();
  });

  it("takes over the lock of a process that is dead, and says whose it was", async () => {
    const path = tempDir();
    const module = new URL("../../dist/src/rollout/output-dir.js", import.meta.url).href;
    const child = spawn(process.execPath, [
      "-e",
      `import(${JSON.stringify(module)}).then((m) => m.openOutputDir(${JSON.stringify(path)})).then(() => process.kill(process.pid, "SIGKILL"))`,
    ]);
    await once(child, "exit");
    const out = await openOutputDir(path);
    expect(out.tookOverFrom).toBe(child.pid);
    await out.close();
  });

  it.each([
    ["a file", (root: string) => join(root, "file")],
    ["below a file", (root: string) => join(root, "file", "out")],
  ])("refuses %s, naming the path and the reason", async (_what, place) => {
    const root = tempDir();
    writeFileSync(join(root, "file"), "");
    await expect(openOutputDir(place(root))).rejects.toMatchObject({
      code: "out_unusable",
      exitCode: 2,
      message: expect.stringContaining("is a file, not a directory") as string,
    });
  });

  it("refuses a directory with somebody else's manifest.json, and leaves it as it is", async () => {
    const path = tempDir();
    writeFileSync(join(path, "manifest.json"), '{"name":"a web app"}');
    await expect(openOutputDir(path)).rejects.toMatchObject({ code: "out_foreign" });
    expect(readdirSync(path)).toEqual(["manifest.json"]);
  });

  it("has the manifest back that was written", async () => {
    const path = join(tempDir(), "out");
    mkdirSync(path);
    const manifest: Manifest = {
      schema: "rollcall.manifest/1",
      run_id: "r",
      created_at: "now",
      tasks: { path: "t", sha256: "0" },
      settings: {},
      versions: {},
    };
    const out = await openOutputDir(path);
    await out.writeManifest(manifest);
    await out.close();
    const again = await openOutputDir(path);
    expect(again.manifest).toEqual(manifest);
    await again.close();
  });
});

describe("requireSameRun", () => {
  const manifest: Manifest = {
    schema: "rollcall.manifest/1",
    run_id: "r",
    created_at: "",
    tasks: { path: "old.jsonl", sha256: "a".repeat(64) },
    settings: { model: "m", repeats: 1 },
    versions: {},
  };

  it("accepts the same task file under another name", () => {
    expect(() =>
      requireSameRun("/out", manifest, { tasks: { path: "new.jsonl", sha256: "a".repeat(64) }, settings: { repeats: 1, model: "m" } }),
    ).not.toThrow();
  });

  it("names both files when they differ", () => {
    const wanted = { tasks: { path: "new.jsonl", sha256: "b".repeat(64) }, settings: manifest.settings };
    expect(() => requireSameRun("/out", manifest, wanted)).toThrow(/belongs to another task file \(old\.jsonl.*new\.jsonl/);
  });

  it("lists the settings under which results would not compare", () => {
    expect(() => requireSameRun("/out", manifest, { tasks: manifest.tasks, settings: { model: "n", repeats: 1 } })).toThrow(
      'model: "m" there, "n" now',
    );
  });
});
