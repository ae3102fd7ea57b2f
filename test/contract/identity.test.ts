// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withDerivedIds } from "../../src/contract/derive.ts";
import {
  activationIdSchema,
  activationJobId,
  captureKey,
  deriveActivationId,
  newRunId,
  parseCaptureKey,
  rolloutIdSchema,
  safeName,
} from "../../src/contract/identity.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/;

/** Ids that broke other people's products. */
const ODD_IDS = [
  "../../x",
  "/abs",
  "a/b",
  "a\\b",
  ".",
  "..",
  "",
  " ",
  "-rf",
  "CON",
  "a:b",
  "0",
  "1e3",
  "x".repeat(300),
  "x".repeat(301),
  "\u00e9",
  "e\u0301",
  "A",
  "a",
  "😀",
  "😀😀",
  "\u202e",
  "\0",
  "x-a1",
  "x-a0",
  "x-a01",
  "x-a12345678901",
  "__proto__",
  "a b",
  "a_b",
  "a?b",
  // Cleaned and hashed they would look like UUIDs, which are names as they are.
  "/83d10b06-26d1-4636-a32c",
  "83d10b06-26d1-4636-a123",
];

describe("a safe name", () => {
  test("is a safe path, distinct for distinct ids, and never ends like an attempt [E12]", () => {
    const names = ODD_IDS.map(safeName);
    expect(new Set(names).size).toBe(ODD_IDS.length);
    for (const name of names) {
      expect(name).toMatch(NAME);
      expect(rolloutIdSchema.safeParse(name).success).toBe(true);
      expect(activationIdSchema.safeParse(deriveActivationId("run-1", name)).success).toBe(true);
    }
  });

  test("is the id itself where that is safe", () => {
    for (const id of ["0", "1e3", "CON", "task-7", "a.b_c", "83d10b06-26d1-4636-a32c-23f92c57f30b", "x".repeat(80)])
      expect(safeName(id)).toBe(id);
  });

  test("keeps these properties for any ids [E12]", () => {
    const id = fc.oneof(
      fc.string({ unit: "binary", maxLength: 120 }),
      fc.stringMatching(/^[a-z._-]{0,6}-a?[0-9a-f]{0,13}$/),
      fc.constantFrom(...ODD_IDS),
    );
    fc.assert(
      fc.property(id, id, (one, other) => {
        const name = safeName(one);
        expect(name).toMatch(NAME);
        expect(name).not.toMatch(/-a[0-9]+$/);
        expect(safeName(other) === name).toBe(one === other);
      }),
      { numRuns: 2_000 },
    );
  });

  test("of another id's safe name is a third name", () => {
    for (const id of ODD_IDS.filter((id) => safeName(id) !== id)) expect(safeName(safeName(id))).not.toBe(safeName(id));
  });
});

describe("a capture key", () => {
  test("is the rollout id, with the attempt when there was one before", () => {
    expect(captureKey({ rollout_id: "r1", attempt: 0 })).toBe("r1");
    expect(captureKey({ rollout_id: "r1", attempt: 12 })).toBe("r1-a12");
  });

  test("is read back exactly, for any rollout id and attempt", () => {
    const rolloutId = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,30}$/).filter((id) => rolloutIdSchema.safeParse(id).success);
    fc.assert(
      fc.property(rolloutId, fc.nat(100_000), (rollout_id, attempt) => {
        expect(parseCaptureKey(captureKey({ rollout_id, attempt }))).toEqual({ rollout_id, attempt });
      }),
    );
  });

  test.each(["x-a1", "x-a10", "-x", "", "a/b", "é", ".x"])("%j is no rollout id", (id) => {
    expect(rolloutIdSchema.safeParse(id).success).toBe(false);
  });
  test.each(["x-a0", "x-a", "x-a1b", "a1", "x-A1"])("%j is one", (id) => {
    expect(rolloutIdSchema.safeParse(id).success).toBe(true);
  });
});

describe("derived ids", () => {
  test("fit whatever the run and the task are called [E12]", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.string({ unit: "binary", maxLength: 300 }), (run, task) => {
        expect(activationIdSchema.safeParse(deriveActivationId(run, task)).success).toBe(true);
      }),
    );
  });

  test("are filled in where they are absent, and only there", () => {
    const task_id = { taskset: "office", task_id: "a/b" };
    const name = safeName("a/b");
    expect(withDerivedIds({ task_id }, "run-1")).toEqual({
      task_id,
      run_id: "run-1",
      episode_id: { rollout_id: name },
      activation_id: `act-run-1-${name}`,
    });
    const own = { task_id, run_id: "mine", episode_id: 7, activation_id: "x" };
    expect(withDerivedIds(own, "run-1")).toEqual(own);
    expect(withDerivedIds({}, "run-1")).toEqual({ run_id: "run-1" });
  });

  test("of a new run are rollout ids, and differ within a second", () => {
    const now = new Date("2026-11-29T16:19:12.345Z");
    expect(newRunId(now)).toMatch(/^20261129-161912-[0-9a-f]{8}$/);
    expect(newRunId(now)).not.toBe(newRunId(now));
    // Some 12 of them would be renamed, and some 100 no ids, if every random one were taken.
    for (let n = 0; n < 50_000; n++) {
      const id = newRunId(now);
      if (safeName(id) !== id || !rolloutIdSchema.safeParse(id).success) expect.fail(`${id} is no name of its own`);
    }
  });

  test("of a generation's job differ", () => {
    expect([0, 1, 2].map((generation) => activationJobId("act-1", generation))).toEqual(["act-1", "act-1.g1", "act-1.g2"]);
  });
});
