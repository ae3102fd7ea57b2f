// SPDX-License-Identifier: Apache-2.0
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { StderrTail } from "../../src/codex/stderr.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** What is reachable, not what the collector has not come to yet: that differs by the Node version. */
function heldByBuffers(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

describe("StderrTail", () => {
  it("passes everything on and remembers the end", async () => {
    const tail = new StderrTail(8);
    const passed = buffer(Readable.from([Buffer.from("one two "), Buffer.from("three four")]).pipe(tail));
    expect((await passed).toString()).toBe("one two three four");
    expect(tail.window()).toEqual({ text: "ree four", startsMidStream: true, totalBytes: 18 });
  });

  it("does not begin within a character", async () => {
    const tail = new StderrTail(5);
    await buffer(Readable.from([Buffer.from("a😀b€")]).pipe(tail));
    expect(tail.window()).toMatchObject({ text: "b€", startsMidStream: true });
  });

  it("can be asked before the stream ends, and says when it has everything", () => {
    const tail = new StderrTail();
    tail.resume();
    tail.write("so far");
    expect(tail.window()).toEqual({ text: "so far", startsMidStream: false, totalBytes: 6 });
  });

  it("holds no more than its window, in chunks of any size", async () => {
    const tail = new StderrTail(64 * 1024);
    async function* many(): AsyncGenerator<Buffer> {
      for (let n = 0; n < 200_000; n++) yield Buffer.from("tiny\n");
      for (let n = 0; n < 500; n++) yield Buffer.alloc(100_000, n % 2 === 0 ? "x" : "y");
    }
    tail.resume();
    const before = heldByBuffers();
    const ended = new Promise((resolve) => tail.once("end", resolve));
    Readable.from(many()).pipe(tail);
    await ended;
    expect(tail.window()).toEqual({ text: "y".repeat(64 * 1024), startsMidStream: true, totalBytes: 1_000_000 + 50_000_000 });
    await expect.poll(() => heldByBuffers() - before).toBeLessThan(1024 * 1024);
  });
});
