// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { resultSchema, type ActivationResult } from "../../src/contract/result.ts";
import { wholeResult } from "../../src/queue/deliver.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { keys } from "../../src/queue/names.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, completedOf, startRig, TEST_KEYS, type Rig, type Run } from "./rig.ts";

const dir = suiteDir();
let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

/** All that a result can be large by, and characters of more than one byte. */
const LARGE: Partial<ActivationResult> = {
  observations: { source: "codex", records: [], gaps: [{ code: "stdout_lines_unparsed", detail: "é😀".repeat(200_000) }] },
  attempts: Array.from({ length: 50 }, (_, index) => attemptOf(index)),
  artifacts: Array.from({ length: 2_000 }, (_, index) => ({
    path: `outputs/${index}`,
    source: `/workspace/${index}`,
    kind: "output" as const,
    bytes: 1,
    sha256: "0".repeat(64),
    uri: `dir:x/${index}`,
    quarantined: false,
  })),
};

function commits(facts: Partial<ActivationResult>): Run {
  return async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    const result = { ...completedOf(activation, generation, attempt), ...facts };
    return { kind: "ended", ...(await rig.store.commit(result)) };
  };
}

async function delivered(id: string): Promise<ActivationResult> {
  await rig.ended(id);
  return (await rig.queues.results("results").getJob(id))!.data;
}

const add = (id: string, generation = 0) =>
  enqueueActivations(rig.queues, [activationOf(id, { reply_to: "results", metadata: { own: "é" } })], { keys: TEST_KEYS, generation });

describe("a result of more than max_result_bytes", () => {
  it("arrives by reference, small and as its schema says, and is read back as it was committed [D7]", async () => {
    await rig.sentinel();
    await rig.worker(commits(LARGE));
    await add("act-large");
    const result = await delivered("act-large");
    expect(await rig.queues.redis.memory("USAGE", keys.job("results", "act-large"), "SAMPLES", 0)).toBeLessThan(16_384);
    expect(resultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({ activation_id: "act-large", status: "completed", metadata: { own: "é" }, attempts: [], artifacts: [] });

    // A consumer that has only the address and the sum.
    const bytes = readFileSync(new URL(result.body!.uri));
    expect(result.body).toMatchObject({ store_id: rig.store.id, bytes: bytes.length });
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(result.body!.sha256);
    const whole = await wholeResult(rig.store, result);
    expect(whole).toEqual(await rig.store.readCommit("act-large"));
    expect(whole.observations).toEqual(LARGE.observations);
  });

  it("is still found when its activation was run again since, and not taken for the newer one", async () => {
    await rig.sentinel();
    await rig.worker(commits(LARGE));
    await add("act-again");
    const first = await delivered("act-again");
    await rig.store.setAside("act-again", 0);
    await add("act-again", 1);
    const second = await rig.ended("act-again", 1);
    expect((await wholeResult(rig.store, first)).generation).toBe(0);
    expect(await wholeResult(rig.store, (await rig.queues.results("results").getJob("act-again.g1"))!.data)).toEqual(second);
  });

  it("is not read from another store, nor when its bytes are others or gone", async () => {
    await rig.sentinel();
    await rig.worker(commits(LARGE));
    await add("act-large");
    const result = await delivered("act-large");
    const other = await openDirectoryStore(join(dir, "other"));
    await expect(wholeResult(other, result)).rejects.toMatchObject({ code: "result_elsewhere" });
    const path = join(rig.storeRoot, "act-large/result.json");
    writeFileSync(path, readFileSync(path, "utf8").replace('"completed"', '"cancelled"'));
    await expect(wholeResult(rig.store, result)).rejects.toMatchObject({ code: "result_damaged" });
    const gone = { ...result, generation: 7 };
    await expect(wholeResult(rig.store, gone)).rejects.toMatchObject({ code: "result_missing" });
  });
});

it("a small result arrives whole, without a reference", async () => {
  await rig.sentinel();
  await rig.worker(commits({}));
  await add("act-small");
  const result = await delivered("act-small");
  expect(result).toEqual(await rig.store.readCommit("act-small"));
  expect(await wholeResult(rig.store, result)).toBe(result);
});
