// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "vitest";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import { safeName } from "../../src/contract/identity.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";

/** A new store of some kind, and a look at what is in it past its interface. */
export interface StoreUnderTest {
  /** Opens it, the first time or again: each call is another worker. */
  open(): Promise<ArtifactStore>;
  /** Opens another one, the same each time. */
  openOther(): Promise<ArtifactStore>;
  /** Paths of everything that is in it, sorted; also of what is there in part only. */
  paths(): Promise<string[]>;
  /** Puts something there that the store did not. */
  plant(path: string, text: string): Promise<void>;
  /** How an address begins. */
  uriRoot: string;
}

const OUTPUT = { kind: "output", source: "/workspace/x", quarantined: false } as const;
const EVIDENCE = { kind: "evidence", source: null, quarantined: false } as const;
const bytesOf = (value: string): Readable => Readable.from([Buffer.from(value)]);

/** What every artifact store must do. */
export function describeStore(kind: string, make: () => Promise<StoreUnderTest>): void {
  describe(kind, () => {
    let place: StoreUnderTest;
    let store: ArtifactStore;

    beforeEach(async () => {
      place = await make();
      store = await place.open();
    });

    describe("the store", () => {
      test("keeps its id; a second store has another", async () => {
        expect((await place.open()).id).toBe(store.id);
        expect((await place.openOther()).id).not.toBe(store.id);
      });

      test("keeps a document beside a result once, and gives it back as it is", async () => {
        expect(await store.readDocument("act-1", "rollout.g0")).toBeNull();
        const created = await Promise.all(["a", "b"].map(async (text) => (await place.open()).putDocument("act-1", "rollout.g0", text)));
        expect(created.filter((one) => one)).toHaveLength(1);
        const kept = (await store.readDocument("act-1", "rollout.g0"))!;
        expect(["a", "b"]).toContain(kept.text);
        expect(await store.putDocument("act-1", "rollout.g0", "c")).toBe(false);
        expect((await store.readDocument("act-1", "rollout.g0"))!.text).toBe(kept.text);
        for (const name of ["../x", "a/b", "", "A", "a..b"]) {
          expect(() => store.putDocument("act-1", name, "x")).toThrow(expect.objectContaining({ code: "bad_path" }) as Error);
        }
      });

      test("gets one id when ten workers open it at once", async () => {
        const stores = await Promise.all(Array.from({ length: 10 }, () => place.openOther()));
        expect(new Set(stores.map(({ id }) => id)).size).toBe(1);
      });

      test("whose first document is not ours is refused", async () => {
        await place.plant("_store.json", "hello");
        await expect(place.open()).rejects.toMatchObject({ code: "store_damaged" });
        await place.plant("_store.json", "{}");
        await expect(place.open()).rejects.toMatchObject({ code: "store_damaged" });
      });
    });

    describe("an artifact", () => {
      test("is byte-identical, hashed on the way, and has an address in the store", async () => {
        const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256));
        const artifact = await store.put(
          "act-1",
          2,
          "outputs/a b/ü\n+%.bin",
          Readable.from([bytes.subarray(0, 7), bytes.subarray(7)]),
          OUTPUT,
        );
        expect(artifact).toEqual({
          path: "outputs/a b/ü\n+%.bin",
          uri: `${place.uriRoot}act-1/attempt-2/outputs/a%20b/%C3%BC%0A%2B%25.bin`,
          bytes: 300_000,
          sha256: createHash("sha256").update(bytes).digest("hex"),
          ...OUTPUT,
        });
        expect(await place.paths()).toContain("act-1/attempt-2/outputs/a b/ü\n+%.bin");
        expect(bytes.equals(await buffer(store.open("act-1", 2, artifact.path)))).toBe(true);
      });

      test("may be empty", async () => {
        expect(await store.put("act-1", 0, "x", Readable.from([]), OUTPUT)).toMatchObject({ bytes: 0 });
        expect(await text(store.open("act-1", 0, "x"))).toBe("");
      });

      test("never replaces one that is there, and ends the stream it was given", async () => {
        await store.put("act-1", 0, "x", bytesOf("first"), OUTPUT);
        const body = new PassThrough();
        await expect(store.put("act-1", 0, "x", body, OUTPUT)).rejects.toMatchObject({ code: "artifact_exists" });
        expect(body.destroyed).toBe(true);
        expect(await text(store.open("act-1", 0, "x"))).toBe("first");
      });

      test("leaves nothing when its stream fails, whose error comes back", async () => {
        const failed = new Error("gone");
        async function* half(): AsyncGenerator<Buffer> {
          yield Buffer.alloc(12_000_000, "x");
          throw failed;
        }
        await expect(store.put("act-1", 0, "x", Readable.from(half(), { objectMode: false }), OUTPUT)).rejects.toBe(failed);
        expect(await place.paths()).toEqual(["_store.json"]);
      });

      test("that is not there is an error of its stream", async () => {
        await expect(buffer(store.open("act-1", 0, "x"))).rejects.toThrow(/x/);
      });

      test("with a path too long for the store is refused as such", async () => {
        const long = Array.from({ length: 30 }, () => "x".repeat(300)).join("/");
        await expect(store.put("act-1", 0, long, bytesOf("x"), OUTPUT)).rejects.toMatchObject({ code: "path_too_long" });
      });

      test("is found where it was withheld, and no longer where it was", async () => {
        await store.put("act-1", 0, "a b/ü.log", bytesOf("x"), EVIDENCE);
        expect(await store.withhold("act-1", 0, "a b/ü.log")).toEqual({
          path: "withheld/a b/ü.log",
          uri: `${place.uriRoot}act-1/attempt-0/withheld/a%20b/%C3%BC.log`,
        });
        expect(await place.paths()).toEqual(["_store.json", "act-1/attempt-0/withheld/a b/ü.log"]);
        expect(await text(store.open("act-1", 0, "withheld/a b/ü.log"))).toBe("x");
      });

      test.each(["", "..", "../x", "a/../../x", "/etc/x", "a//b", "./a", "a\0b"])("the path %j is refused", async (path) => {
        await expect(store.put("act-1", 0, path, Readable.from([]), OUTPUT)).rejects.toMatchObject({ code: "bad_path" });
      });

      test.each(["", "..", "../x", "a/b", "_store.json", "a\0"])("the activation id %j is refused", async (id) => {
        await expect(store.put(id, 0, "x", Readable.from([]), OUTPUT)).rejects.toMatchObject({ code: "bad_path" });
        await expect(store.putAttempt(id, attemptOf(0))).rejects.toMatchObject({ code: "bad_path" });
        await expect(store.readCommit(id)).rejects.toMatchObject({ code: "bad_path" });
      });

      test("of any task id stays below the store [E12]", async () => {
        const controls = ["\u202e", "\0", "e\u0301"];
        const ids = ["../../x", "/abs", "a/b", ".", "..", "", "-rf", "CON", "a:b", "x".repeat(300), "é", "x-a1", "__proto__", ...controls];
        for (const id of ids) await store.put(`act-run-${safeName(id)}`, 0, "x", bytesOf("x"), OUTPUT);
        const expected = ids.map((id) => `act-run-${safeName(id)}/attempt-0/x`);
        expect((await place.paths()).filter((path) => path.endsWith("/x"))).toEqual(expected.sort());
      });
    });

    describe("attempts", () => {
      test("come back oldest first, without those that never said how they ended", async () => {
        for (const number of [10, 2, 0]) await store.putAttempt("act-1", attemptOf(number));
        await store.put("act-1", 1, "events.jsonl", bytesOf("x"), EVIDENCE);
        expect((await store.readAttempts("act-1")).map(({ attempt }) => attempt)).toEqual([0, 2, 10]);
        expect(await store.readAttempts("act-2")).toEqual([]);
        expect(await store.attemptNumbers("act-1")).toEqual([0, 1, 2, 10]);
        expect(await store.attemptNumbers("act-2")).toEqual([]);
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
        expect(await store.commit(resultOf("act-1"))).toMatchObject({ committed: false });
        expect(await store.readCommit("act-1")).toEqual(resultOf("act-1"));
      });

      test("is the same for twenty that open the store and commit at once", async () => {
        const stores = await Promise.all(Array.from({ length: 20 }, () => place.open()));
        const ends = await Promise.all(stores.map((one, index) => one.commit(resultOf("act-1", { metadata: { by: String(index) } }))));
        expect(ends.filter(({ committed }) => committed)).toHaveLength(1);
        expect(new Set(ends.map(({ result }) => result.metadata["by"])).size).toBe(1);
        expect(await place.paths()).toEqual(["_store.json", "act-1/result.json"]);
      });

      test("of an earlier generation is kept beside the new one", async () => {
        await store.commit(resultOf("act-1", { status: "failed" }));
        await store.setAside("act-1", 0);
        await store.setAside("act-1", 0);
        expect(await store.readCommit("act-1")).toBeNull();
        expect((await store.commit(resultOf("act-1", { generation: 1 }))).committed).toBe(true);
        await store.setAside("act-1", 0); // late, and about what was set aside long ago
        expect((await store.readCommit("act-1"))?.generation).toBe(1);
        // A worker of the earlier generation is told how that one ended.
        expect(await store.commit(resultOf("act-1"))).toMatchObject({ committed: false, result: { status: "failed", generation: 0 } });
      });

      test("has an address and its very bytes, also once a later generation stands in its place", async () => {
        const first = resultOf("act-1", { status: "failed", metadata: { text: "é 😀" } });
        await store.commit(first);
        const bytes = `${JSON.stringify(first)}\n`;
        // The address of artifacts in a directory is relative to it; this one stands alone.
        const root = place.uriRoot.startsWith("dir:") ? /^file:\/\/\/.*\/act-1\/result\.json$/ : `${place.uriRoot}act-1/result.json`;
        expect(await store.readCommitted("act-1", 0)).toEqual({ text: bytes, uri: expect.stringMatching(root) as string });
        expect(await store.readCommitted("act-1", 1)).toBeNull();
        await store.commit(resultOf("act-1", { generation: 1 }));
        expect(await store.readCommitted("act-1", 0)).toMatchObject({
          text: bytes,
          uri: expect.stringContaining("/result.g0.json") as string,
        });
        expect(JSON.parse((await store.readCommitted("act-1", 1))!.text)).toMatchObject({ generation: 1 });
      });

      test("makes room by itself when the earlier one was not set aside", async () => {
        await store.commit(resultOf("act-1", { status: "failed" }));
        expect((await store.commit(resultOf("act-1", { generation: 1 }))).committed).toBe(true);
        expect(await place.paths()).toEqual(["_store.json", "act-1/result.g0.json", "act-1/result.json"]);
      });

      test("does not come from a worker of a generation that ended before", async () => {
        await store.commit(resultOf("act-1", { status: "failed" }));
        await store.setAside("act-1", 0);
        const late = await store.commit(resultOf("act-1", { status: "completed" }));
        expect(late).toMatchObject({ committed: false, result: { status: "failed" } });
        expect(await store.readCommit("act-1")).toBeNull();
      });

      test("is listed, and nothing else is", async () => {
        const ids = Array.from({ length: 20 }, (_, index) => `act-${index + 10}`);
        await Promise.all(ids.map((id) => store.commit(resultOf(id))));
        await store.commit(resultOf("store.json")); // like the store's own file, but for an underscore
        await store.putAttempt("act-3", attemptOf(0));
        await place.plant("-not-an-id/result.json", "{}");
        await place.plant("notes", "x");
        const ended: string[] = [];
        for await (const id of store.listEnded()) ended.push(id);
        expect(ended.sort()).toEqual([...ids, "store.json"]);
      });

      test("that is torn counts as not there, for this one only, and is put aside for the next one [fault B2]", async () => {
        for (const torn of ["", '{"half', "[]", "{}", "null"]) {
          await place.plant("act-1/result.json", torn);
          await store.commit(resultOf("act-2"));
          expect([await store.readCommit("act-1"), await store.readCommitted("act-1", 0)]).toEqual([null, null]);
          await store.setAside("act-1", 0);
          expect((await store.readCommit("act-2"))?.activation_id).toBe("act-2");
        }
        expect((await store.commit(resultOf("act-1"))).committed).toBe(true);
        expect((await store.readCommit("act-1"))?.activation_id).toBe("act-1");
        expect(await place.paths()).toContain("act-1/result.json.damaged");
      });

      test("of an attempt that is torn counts as not there, too [fault B2]", async () => {
        await store.putAttempt("act-1", attemptOf(0));
        await place.plant("act-1/attempt-1/attempt.json", '{"attempt": 1, ');
        expect((await store.readAttempts("act-1")).map(({ attempt }) => attempt)).toEqual([0]);
        await store.putAttempt("act-1", attemptOf(1));
        expect((await store.readAttempts("act-1")).map(({ attempt }) => attempt)).toEqual([0, 1]);
      });
    });
  });
}
