// SPDX-License-Identifier: Apache-2.0
// Redacts 100 MB through the stream form and copies the same bytes through a plain stream, in the same run; prints the
// times and their ratio, and the same for 10 MB, to show that time grows with the text only.
// npx tsc -p tsconfig.build.json && node dist/bench/redact.js
import { PassThrough, Readable, Writable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { buildSecretSet, createRedactStream, redactText, type SecretInput } from "../src/redact/index.ts";

const CHUNK_BYTES = 65_536;

/** 50 values as grants have them: bearer tokens, ids, one with quotes and spaces, one of 8 KiB. */
function fiftySecrets(): SecretInput[] {
  const token = (seed: number, length: number): string =>
    Array.from({ length }, (_, index) => ((seed * 7919 + index * 104_729 + index * index * 31) % 36).toString(36)).join("");
  const tokens = Array.from({ length: 48 }, (_, index) => ({ value: `Bearer tok-${token(index + 1, 20 + index)}` }));
  return [...tokens, { value: `a "quoted\\ value" ${token(99, 20)}` }, { value: token(100, 8192) }];
}

/** Log lines as Codex and tools write them; `every`: how many lines until one shows a secret. */
function logLines(secrets: readonly SecretInput[], every: number, bytes: number): Buffer {
  const lines: string[] = [];
  for (let size = 0, index = 0; size < bytes; index++) {
    const shown = index % every === 0 ? JSON.stringify(secrets[index % 48]!.value) : "nothing to see";
    const line = `2026-01-01T00:00:00.${index}Z INFO session: {"type":"item.completed","text":"wrote C:\\\\out\\\\${index}.txt 50% done: ${shown}"}\n`;
    lines.push(line);
    size += line.length;
  }
  return Buffer.from(lines.join("")).subarray(0, bytes);
}

async function milliseconds(block: Buffer, totalBytes: number, through: Transform): Promise<number> {
  function* chunks(): Generator<Buffer> {
    for (let sent = 0; sent < totalBytes; sent += CHUNK_BYTES) {
      const from = sent % block.length;
      yield block.subarray(from, Math.min(from + CHUNK_BYTES, block.length));
    }
  }
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      // A copy must touch its bytes, or nothing would be compared.
      Buffer.from(chunk);
      done();
    },
  });
  const started = performance.now();
  await pipeline(Readable.from(chunks(), { objectMode: false }), through, sink);
  return performance.now() - started;
}

const secrets = fiftySecrets();
const started = performance.now();
const set = buildSecretSet(secrets);
console.log(`building a set of 50 values: ${(performance.now() - started).toFixed(1)} ms`);

const megabyte = logLines(secrets, 20, 2 ** 20).toString();
for (let round = 0; round < 3; round++) redactText(set, megabyte);
const once = performance.now();
redactText(set, megabyte);
console.log(`1 MB of text x 50 values: ${(performance.now() - once).toFixed(1)} ms`);

for (const [name, block] of [
  ["log lines, one in 20 with a secret", logLines(secrets, 20, 16 * CHUNK_BYTES)],
  [
    "the worst: 8 KiB value begun over and over",
    Buffer.from(secrets[49]!.value.slice(0, 11).repeat(100_000)).subarray(0, 16 * CHUNK_BYTES),
  ],
] as const) {
  for (const size of [10, 100]) {
    const copy = await milliseconds(block, size * 2 ** 20, new PassThrough());
    const redact = await milliseconds(block, size * 2 ** 20, createRedactStream(set));
    console.log(`${name}: ${size} MB: copy ${copy.toFixed(0)} ms, redact ${redact.toFixed(0)} ms, ratio ${(redact / copy).toFixed(1)}`);
  }
}
console.log(`peak memory: ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MB`);
