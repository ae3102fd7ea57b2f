// SPDX-License-Identifier: Apache-2.0
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { buildSecretSet, createRedactStream, findSecrets, holdsSecret, redactText } from "../../src/redact/index.ts";

const long = "L0ng".repeat(2048);
const set = buildSecretSet([{ value: "FAKE-token-é-1234" }, { value: long }]);

describe("createRedactStream", () => {
  it("redacts a value split over writes, escaped or not [C1]", async () => {
    const bytes = Buffer.from("a FAKE-token-é-1234 b FAKE-token-\\\\u00e9-1234 c FAKE-token-%C3%A9-1234 d FAKE-tok... (truncated 9 bytes)");
    for (const size of [1, 2, 3, 7, 20]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
      const shown = await buffer(Readable.from(chunks).pipe(createRedactStream(set)));
      expect(shown.toString()).toBe("a [redacted] b [redacted] c [redacted] d [redacted]... (truncated 9 bytes)");
    }
  });

  it("passes ordinary lines on at once, and what had begun when it turns out to be none", async () => {
    const stream = createRedactStream(set);
    const written = async (text: string): Promise<string> => {
      await new Promise((resolve) => stream.write(text, resolve));
      return String((stream.read() as Buffer | null) ?? "");
    };
    expect(await written("all is well.\n")).toBe("all is well.\n");
    expect(await written("it is FAK")).toBe("it is ");
    expect(await written("IR.\n")).toBe("FAKIR.\n");
    stream.end();
  });

  it("hides what had begun when the end is a cut", async () => {
    const shown = await buffer(Readable.from([Buffer.from("it is FA")]).pipe(createRedactStream(set, { endsAtCut: true })));
    expect(shown.toString()).toBe("it is [redacted]");
  });

  it("leaves short values alone in lines of JSON only", async () => {
    const short = buildSecretSet([{ value: "x9" }, { value: "FAKE-token" }]);
    const shown = (options: object): Promise<string> =>
      buffer(Readable.from([Buffer.from('{"x9":"FAKE-token"}')]).pipe(createRedactStream(short, options))).then(String);
    expect(await shown({})).toBe('{"[redacted]":"[redacted]"}');
    expect(await shown({ structured: true })).toBe('{"x9":"[redacted]"}');
  });

  it("takes text in its encoding", async () => {
    const stream = createRedactStream(set);
    stream.write("a FAKE-token-é-1234 b ");
    stream.end(Buffer.from("FAKE-token-é-1234 c").toString("hex"), "hex");
    expect((await buffer(stream)).toString()).toBe("a [redacted] b [redacted] c");
  });

  it("writes one replacement for values that overlap over writes, and passes on what is between and behind", async () => {
    const two = buildSecretSet([{ value: "abcdefgh" }, { value: "efghijklmnopqrst" }]);
    const text = "1 abcdefghijklmnopqrst 2 abcdefgh 3 efghijklmnopqrst4abcdefghabcdefgh5";
    for (const size of [1, 3, 11, 100]) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => Buffer.from(text.slice(at * size, (at + 1) * size)));
      const shown = await buffer(Readable.from(chunks).pipe(createRedactStream(two)));
      expect(shown.toString()).toBe("1 [redacted] 2 [redacted] 3 [redacted]4[redacted][redacted]5");
    }
  });

  it("writes one replacement for a chain of values, each overlapping the next, although its beginning is long written", async () => {
    const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const chained = buildSecretSet(Array.from({ length: 12 }, (_, at) => ({ value: letters.slice(at * 4, at * 4 + 8) })));
    const text = `1 ${letters} 2 ${letters.slice(0, 30)}, 3`;
    for (const size of [1, 5, 1000]) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => Buffer.from(text.slice(at * size, (at + 1) * size)));
      const shown = await buffer(Readable.from(chunks).pipe(createRedactStream(chained)));
      expect(shown.toString()).toBe(redactText(chained, text));
      expect(shown.toString()).toMatch(/^1 \[redacted\] 2 \[redacted\]\w*, 3$/);
    }
  });

  it("holds little back, whatever comes", async () => {
    for (const unit of ["L0n", "\\", "%25", "F", "... (truncated 1", "FAKE-tok", "x9".repeat(99)]) {
      const stream = createRedactStream(set);
      let out = 0;
      stream.on("data", (bytes: Buffer) => (out += bytes.length));
      const chunk = Buffer.from(unit.repeat(4096));
      for (let round = 0; round < 20; round++) await new Promise((resolve) => stream.write(chunk, resolve));
      expect(out).toBeGreaterThan(19 * chunk.length);
      stream.destroy();
    }
  });
});

describe("findSecrets", () => {
  const count = async (text: string, size = 5): Promise<number> => {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
    return findSecrets(set).scan(Readable.from(chunks));
  };

  it("counts whole forms, however the file is read", async () => {
    const encoded = Buffer.from("x:FAKE-token-é-1234").toString("base64");
    const text = `1 FAKE-token-é-1234 2 FAKE-token-\\u00e9-1234 3 ${encoded} 4 ${long} FAKE-token-é-123`;
    for (const size of [1, 5, 1000, 100_000]) expect(await count(text, size)).toBe(4);
  });

  it("counts a value inside another one once with it, and by itself where it stands alone", async () => {
    const nested = findSecrets(buildSecretSet([{ value: "outer-FAKE-inner-FAKE-inner-end" }, { value: "FAKE-inner" }]));
    for (const [text, hits] of [
      ["outer-FAKE-inner-FAKE-inner-end", 1],
      ["outer-FAKE-inner-FAKE-inner-en", 2],
      ["FAKE-inner, outer-FAKE-inner-FAKE-inner-end", 2],
    ] as const) {
      expect(await nested.scan(Readable.from(Array.from(text, (letter) => Buffer.from(letter)))), text).toBe(hits);
    }
  });

  it("does not count cut-off copies and ordinary content", async () => {
    expect(await count(`FAKE-token-é-123... (truncated 1 bytes) ${long.slice(1)}`)).toBe(0);
    expect(await findSecrets(buildSecretSet([{ value: "x9" }])).scan(Readable.from([Buffer.from("x9")]))).toBe(0);
  });

  it("tells whether a text holds a whole form, as a scan does", () => {
    expect(["say FAKE-token-é-1234", "FAKE-token-\\u00e9-1234."].every((text) => holdsSecret(set, text))).toBe(true);
    expect(["", "FAKE-token-é-123", long.slice(1), "all is well"].some((text) => holdsSecret(set, text))).toBe(false);
  });

  it("counts escaped forms, also those that the end completes", async () => {
    const percent = buildSecretSet([{ value: "FAKE-token%" }]);
    const text = "FAKE-token%25 FAKE\\u002dtoken\\u0025 FAKE-token%25";
    for (const size of [1, 2, 3, 50]) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => Buffer.from(text.slice(at * size, (at + 1) * size)));
      expect(await findSecrets(percent).scan(Readable.from(chunks))).toBe(3);
    }
    expect(holdsSecret(percent, "FAKE-token%25")).toBe(true);
  });

  it("counts hits that lie side by side, far apart, and at either end", async () => {
    const value = "FAKE-token-é-1234";
    for (const size of [1, 7, 1000]) {
      expect(await count(value.repeat(3), size)).toBe(3);
      expect(await count(`${value}${" ".repeat(500)}${value}.\n${value}`, size)).toBe(3);
      expect(await count("", size)).toBe(0);
    }
  });

  it("rejects with the stream's error", async () => {
    const broken = new Readable({ read: () => broken.destroy(new Error("disk gone")) });
    await expect(findSecrets(set).scan(broken)).rejects.toThrow("disk gone");
  });
});
