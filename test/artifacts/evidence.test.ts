// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createByteWindow } from "../../src/artifacts/byte-window.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { openEventWriter } from "../../src/artifacts/event-writer.ts";
import { putStderr, putText, putTranscript, type EvidenceTarget } from "../../src/artifacts/evidence.ts";
import { buildSecretSet, emptySecretSet } from "../../src/redact/index.ts";

const TOKEN = 'FAKE-tok "quoted" \\ 100% 7f3a9c1e';
const never = new AbortController().signal;

let directory: string;
let target: EvidenceTarget;
let open: EvidenceTarget;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "rollcall-evidence-"));
  const store = await openDirectoryStore(join(directory, "store"));
  target = { store, activation_id: "act-1", attempt: 0, secrets: buildSecretSet([{ value: TOKEN }]) };
  open = { ...target, attempt: 1, secrets: emptySecretSet };
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const text = (name: string, attempt = 0): Promise<string> => readFile(join(directory, `store/act-1/attempt-${attempt}`, name), "utf8");

describe("events.jsonl", () => {
  test("holds each event with its time, redacted on decoded strings [C4 B8]", async () => {
    const event = { type: "item.completed", item: { aggregated_output: `x ${TOKEN} y`, [TOKEN]: 1 }, text: "価格 😀 é" };
    for (const each of [target, open]) {
      const writer = openEventWriter(each);
      await writer.write(1_790_000_000.25, { type: "thread.started" });
      await writer.write(1_790_000_001.5, event);
      const { artifact, gaps } = await writer.end();
      expect(gaps).toEqual([]);
      expect(artifact).toMatchObject({ path: "events.jsonl", kind: "evidence", source: null });
    }
    const lines = (await text("events.jsonl"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toEqual([
      [1_790_000_000.25, { type: "thread.started" }],
      [1_790_000_001.5, { type: "item.completed", item: { aggregated_output: "x [redacted] y", "[redacted]": 1 }, text: "価格 😀 é" }],
    ]);
    // The search finds the token where nothing is redacted.
    expect(JSON.parse((await text("events.jsonl", 1)).split("\n")[1]!)).toEqual([1_790_000_001.5, event]);
  });

  test("can be read while Codex still runs", async () => {
    const writer = openEventWriter(target);
    await writer.write(1, { type: "turn.started" });
    await vi.waitFor(async () => expect(await text("events.jsonl")).toBe('[1,{"type":"turn.started"}]\n'));
    await writer.end();
  });

  test("keeps what a killed worker had seen", async () => {
    const script = `
      const { openDirectoryStore } = await import("./dist/src/artifacts/directory-store.js");
      const { openEventWriter } = await import("./dist/src/artifacts/event-writer.js");
      const { emptySecretSet } = await import("./dist/src/redact/index.js");
      const store = await openDirectoryStore(${JSON.stringify(join(directory, "store"))});
      const writer = openEventWriter({ store, activation_id: "act-1", attempt: 0, secrets: emptySecretSet });
      for (let n = 0; ; n++) { await writer.write(n, { n }); if (n % 1000 === 0) await new Promise(setImmediate); }`;
    const worker = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
    try {
      await vi.waitFor(async () => expect((await text("events.jsonl")).length).toBeGreaterThan(100_000), { timeout: 20_000 });
    } finally {
      worker.kill("SIGKILL");
    }
    const lines = (await text("events.jsonl")).split("\n").slice(0, -1);
    expect(lines.map((line) => (JSON.parse(line) as [number])[0])).toEqual(lines.map((_, index) => index));
  });

  test("stops at its limit, after a whole line, and says how much is missing", async () => {
    const writer = openEventWriter(target, 100);
    for (let n = 0; n < 20; n++) await writer.write(n, { n });
    const { gaps } = await writer.end();
    const kept = (await text("events.jsonl")).trim().split("\n").length;
    expect(gaps).toEqual([{ code: "stdout_truncated", detail: JSON.stringify({ kept, dropped: 20 - kept }) }]);
    expect(kept).toBeGreaterThan(5);
  });

  test("500,000 events need little memory and little time [A11]", async () => {
    const before = process.memoryUsage().rss;
    const writer = openEventWriter(target);
    for (let n = 0; n < 500_000; n++) await writer.write(n, { type: "item.updated", text: "x".repeat(100) });
    const { artifact } = await writer.end();
    expect(artifact.bytes).toBeGreaterThan(62_000_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
  });

  test("a store that fails is told to the writer, and never left waiting", async () => {
    await writer(target).end();
    const second = writer(target);
    await expect(
      (async () => {
        for (let n = 0; n < 10_000; n++) await second.write(n, { text: "x".repeat(100) });
      })(),
    ).rejects.toMatchObject({ code: "artifact_exists" });
    await expect(second.end()).rejects.toMatchObject({ code: "artifact_exists" });
  });
  const writer = openEventWriter;
});

describe("stderr.log", () => {
  test("is redacted, also where the secret is cut in two writes", async () => {
    await putStderr(target, Readable.from([Buffer.from(`a ${TOKEN.slice(0, 9)}`), Buffer.from(`${TOKEN.slice(9)} b\n`)]));
    expect(await text("stderr.log")).toBe("a [redacted] b\n");
  });

  test("keeps beginning and end of a flood, and reads all of it [A11]", async () => {
    function* flood(): Generator<Buffer> {
      yield Buffer.from("first line\n");
      for (let n = 0; n < 2_000; n++) yield Buffer.alloc(16_384, "x");
      yield Buffer.from(`\n${TOKEN}\nlast line\n`);
    }
    const artifact = await putStderr(target, Readable.from(flood()));
    expect(artifact.bytes).toBeLessThan(200_000);
    const log = await text("stderr.log");
    expect(log.startsWith("first line\n")).toBe(true);
    expect(log.endsWith("\n[redacted]\nlast line\n")).toBe(true);
    expect(log).toMatch(/\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/);
  });

  test("keeps what came before the stream broke off", async () => {
    const stderr = new PassThrough();
    const stored = putStderr(target, stderr);
    stderr.write("seen\n");
    await vi.waitFor(async () => expect(await text("stderr.log")).toBe("seen\n"));
    stderr.destroy(new Error("pipe broke"));
    expect((await stored).bytes).toBe(5);
  });

  test("a store that fails does not stall whoever writes to stderr", async () => {
    await putStderr(target, Readable.from([Buffer.from("x")]));
    const stderr = new PassThrough();
    const stored = putStderr(target, stderr);
    stderr.write("begins\n");
    await expect(stored).rejects.toMatchObject({ code: "artifact_exists" });
    const rest = Array.from({ length: 200 }, () => Buffer.alloc(16_384));
    await pipeline(Readable.from(rest), stderr); // never ends when nobody reads
  });
});

test("the byte window keeps exact ends, whatever the chunks", async () => {
  const input = Buffer.from(Array.from({ length: 1_000 }, (_, index) => 97 + (index % 26)));
  for (const size of [1, 3, 7, 64, 1_000]) {
    for (const [head, tail] of [
      [10, 20],
      [0, 5],
      [5, 0],
      [500, 500],
      [990, 100],
      [2_000, 2_000],
    ] as const) {
      const chunks = Array.from({ length: Math.ceil(1_000 / size) }, (_, index) => input.subarray(index * size, (index + 1) * size));
      const output = await buffer(Readable.from(chunks).pipe(createByteWindow(head, tail)));
      const expected =
        head + tail >= 1_000
          ? input.toString()
          : `${input.toString("latin1", 0, head)}\n[... ${1_000 - head - tail} bytes left out ...]\n${input.toString("latin1", 1_000 - tail)}`;
      expect(output.toString()).toBe(expected);
    }
  }
});

test("config.toml is redacted, as JSON-escaped text too [C4]", async () => {
  const toml = `http_headers = { Authorization = ${JSON.stringify(TOKEN)} }\n`;
  await putText(target, "config.toml", toml);
  await putText(open, "config.toml", toml);
  expect(await text("config.toml")).toBe('http_headers = { Authorization = "[redacted]" }\n');
  expect(await text("config.toml", 1)).toBe(toml);
  expect((await stat(join(directory, "store/act-1/attempt-0/config.toml"))).mode & 0o777).toBe(0o600);
});

describe("the transcript", () => {
  const THREAD = "019a-thread-1";
  let home: string;
  beforeEach(async () => {
    home = join(directory, "codex-home");
    await mkdir(join(home, "sessions/2026/11/29"), { recursive: true });
  });
  const file = (thread: string): string => join(home, `sessions/2026/11/29/rollout-2026-11-29T16-00-00-${thread}.jsonl`);

  test("of this thread is kept, redacted; another thread's is not", async () => {
    await writeFile(file("019a-thread-2"), "foreign");
    await writeFile(file(THREAD), `${JSON.stringify({ payload: TOKEN })}\n`);
    expect(await putTranscript(target, home, THREAD, never)).toMatchObject({ path: "transcript.jsonl", kind: "evidence" });
    expect(await text("transcript.jsonl")).toBe('{"payload":"[redacted]"}\n');
  });

  test("is null when the time is over, and nothing of it is left", async () => {
    await writeFile(file(THREAD), "x".repeat(5_000_000));
    const stop = new AbortController();
    const store = {
      ...target.store,
      put: (...args: Parameters<EvidenceTarget["store"]["put"]>) => {
        stop.abort();
        return target.store.put(...args);
      },
    };
    expect(await putTranscript({ ...target, store }, home, THREAD, stop.signal)).toBeNull();
    expect(await readdir(join(directory, "store/act-1/attempt-0"))).toEqual([]);
  });

  test("is null when there is none, or a link, or an odd thread id", async () => {
    await symlink("/etc/passwd", file(THREAD));
    expect(await putTranscript(target, home, THREAD, never)).toBeNull();
    expect(await putTranscript(target, home, "*", never)).toBeNull();
    expect(await putTranscript(target, join(directory, "none"), THREAD, never)).toBeNull();
  });
});
