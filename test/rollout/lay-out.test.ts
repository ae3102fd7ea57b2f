// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync, statSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { completing } from "../../src/rollout/complete-results.ts";
import { layOut } from "../../src/rollout/lay-out.ts";
import { openResultsFiles } from "../../src/rollout/results-files.ts";
import type { RowFile } from "../../src/rollout/row-file.ts";
import { resultOf } from "../support/result-documents.ts";
import { tempDir } from "../support/temp-dir.ts";

const PLACE = { task: "t1", repeat: 2 };

async function put(
  store: ArtifactStore,
  attempt: number,
  path: string,
  text: string,
  facts: { quarantined?: boolean; kind?: "output" | "evidence" } = {},
) {
  const { quarantined = false, kind = "output" } = facts;
  return store.put("act-1", attempt, path, Readable.from([text], { objectMode: false }), { kind, source: null, quarantined });
}

function call(name: string, args: unknown, status: "completed" | "incomplete" = "completed") {
  return { type: "function_call", id: "i", call_id: "c", name, arguments: typeof args === "string" ? args : JSON.stringify(args), status };
}
/** An agent of the session that handed in. */
const handedInBy = (paths: string[], parent_invocation_id: string): Partial<ActivationResult> => {
  const record = { kind: "agent_invocation", parent_invocation_id, conversation: [call("finish", { paths })] };
  return { observations: { records: [record], gaps: [] } as unknown as ActivationResult["observations"] };
};
const withOutput = (output: unknown[]): Partial<ActivationResult> => ({ response: { output } as unknown as ActivationResult["response"] });

function laid(out: string): Record<string, string> {
  const root = join(out, "task_t1/repeat_2");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => statSync(join(root, path)).isFile());
  return Object.fromEntries(files.sort().map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

describe("a rollout's directory", () => {
  it("has the deliverables at their paths and the arguments of the last successful finish [R46]", async () => {
    const out = tempDir();
    const store = await openDirectoryStore(join(out, "artifacts"));
    const artifacts = [
      await put(store, 1, "outputs/report.xlsx", "report"),
      await put(store, 1, "outputs/sub/a.txt", "a"),
      await put(store, 1, "outputs~2/sub/A.txt", "A"),
      await put(store, 1, "outputs/finish_params.json", "the model's own"),
      await put(store, 1, "quarantine/leak.txt", "secret", { quarantined: true }),
      await put(store, 1, "events.jsonl", "{}", { kind: "evidence" }),
    ];
    const output = [
      call("finish", { reason: "first", paths: [] }),
      call("finish", { reason: "last", paths: ["/workspace/report.xlsx"] }),
      call("finish", { reason: "failed" }, "incomplete"),
      call("other", { reason: "no" }),
    ];
    await layOut(out, resultOf("act-1", { artifacts, episode_id: { rollout_id: "r", attempt: 1 }, ...withOutput(output) }), PLACE, store);
    const files = laid(out);
    expect(Object.keys(files)).toEqual(["finish_params.json", "finish_params~2.json", "report.xlsx", "sub/a.txt", "~2/sub/A.txt"]);
    expect(JSON.parse(files["finish_params.json"]!)).toEqual({ reason: "last", paths: ["/workspace/report.xlsx"] });
    expect(files["finish_params~2.json"]).toBe("the model's own");
    const linked = statSync(join(out, "task_t1/repeat_2/report.xlsx"));
    expect(linked.ino).toBe(statSync(join(out, "artifacts/act-1/attempt-1/outputs/report.xlsx")).ino);
  });

  it("has the arguments of a subagent's finish where the session itself did not hand in", async () => {
    const store = await openDirectoryStore(join(tempDir(), "artifacts"));
    const told = async (facts: Partial<ActivationResult>): Promise<unknown> => {
      const out = tempDir();
      await layOut(out, resultOf("act-1", { artifacts: [], ...facts }), PLACE, store);
      return JSON.parse(laid(out)["finish_params.json"]!) as unknown;
    };
    expect(await told({ ...withOutput([]), ...handedInBy(["child"], "root") })).toEqual({ paths: ["child"] });
    expect(await told({ ...withOutput([call("finish", { paths: ["own"] })]), ...handedInBy(["child"], "root") })).toEqual({
      paths: ["own"],
    });
  });

  it("keeps every deliverable, whatever their names do to each other or to our record [fault B1]", async () => {
    const cases: [string[], string[]][] = [
      [["outputs/finish_params.json/a"], ["finish_params.json", "~2/finish_params.json/a"]],
      [["outputs/Finish_Params.JSON/a"], ["finish_params.json", "~2/Finish_Params.JSON/a"]],
      [
        ["outputs/finish_params.json", "outputs/finish_params~2.json"],
        ["finish_params.json", "finish_params~2.json", "~2/finish_params~2.json"],
      ],
      [
        ["outputs/A", "outputs~2/a", "outputs/~2/a"],
        ["A", "finish_params.json", "~2/a", "~3/a"],
      ],
      [
        ["outputs/A", "outputs~2/a", "outputs/~2"],
        ["A", "finish_params.json", "~2", "~3/a"],
      ],
      [
        ["outputs/A/x", "outputs/a"],
        ["A/x", "finish_params.json", "~2/a"],
      ],
    ];
    for (const [paths, expected] of cases) {
      const out = tempDir();
      const store = await openDirectoryStore(join(out, "artifacts"));
      const artifacts = [];
      for (const path of paths) artifacts.push(await put(store, 0, path, path));
      expect(await layOut(out, resultOf("act-1", { artifacts }), PLACE, store)).toEqual([]);
      const files = laid(out);
      expect(Object.keys(files)).toEqual(expected);
      expect(Object.values(files).sort()).toEqual(["null\n", ...paths].sort());
    }
  });

  it("says what it could not lay out in the line of that one result [fault B1]", async () => {
    const out = tempDir();
    const store = await openDirectoryStore(join(out, "artifacts"));
    const artifacts = [await put(store, 0, "outputs/a.txt", "a")];
    writeFileSync(join(out, "task_t1"), "in the way");
    const raw = await openResultsFiles({ results: join(out, "results.jsonl"), failures: join(out, "failures.jsonl") });
    const rows: RowFile = { ids: ["act-1"], tasks: new Map(), placeOf: () => PLACE, rowOf: async () => null, close: async () => undefined };
    expect(await completing(raw, { out, rows, store }).take(resultOf("act-1", { artifacts }))).toBe(true);
    await raw.close();
    const { observations } = JSON.parse(readFileSync(join(out, "results.jsonl"), "utf8")) as ActivationResult;
    expect(observations.gaps).toContainEqual({
      code: "artifact_skipped",
      detail: JSON.stringify({ path: "task_t1/repeat_2", why: "it was not laid out: ENOTDIR" }),
    });
  });

  it("says null where nobody called finish, or its arguments were no JSON [R46]", async () => {
    const out = tempDir();
    const store = await openDirectoryStore(join(out, "artifacts"));
    for (const output of [[], [call("finish", "{torn")], [call("finish", {}, "incomplete")]]) {
      await layOut(out, resultOf("act-1", withOutput(output)), PLACE, store);
      expect(laid(out)).toEqual({ "finish_params.json": "null\n" });
    }
    await layOut(out, resultOf("act-1"), PLACE, store); // refused: no response
    expect(laid(out)).toEqual({ "finish_params.json": "null\n" });
  });

  it("holds only the newest generation, and nothing that a crash left [R46]", async () => {
    const out = tempDir();
    const store = await openDirectoryStore(join(out, "artifacts"));
    mkdirSync(join(out, "task_t1/.repeat_2.new"), { recursive: true });
    writeFileSync(join(out, "task_t1/.repeat_2.new/half"), "");
    await layOut(out, resultOf("act-1", { artifacts: [await put(store, 0, "outputs/old.txt", "old")] }), PLACE, store);
    expect(Object.keys(laid(out))).toEqual(["finish_params.json", "old.txt"]);
    const again = {
      artifacts: [await put(store, 1, "outputs/new.txt", "new")],
      generation: 1,
      episode_id: { rollout_id: "r", attempt: 1 },
    };
    await layOut(out, resultOf("act-1", again), PLACE, store);
    expect(Object.keys(laid(out))).toEqual(["finish_params.json", "new.txt"]);
    expect(readdirSync(join(out, "task_t1"))).toEqual(["repeat_2"]);
  });

  it("gets copies where the store is no directory, and leaves out what is not there", async () => {
    const out = tempDir();
    const directory = await openDirectoryStore(join(out, "artifacts"));
    const there = await put(directory, 0, "outputs/a.txt", "a");
    const artifacts = [there, { ...there, path: "outputs/gone.txt" }];
    for (const store of [directory, { ...directory, directory: null }]) {
      await layOut(out, resultOf("act-1", { artifacts }), PLACE, store);
      expect(Object.keys(laid(out))).toEqual(["a.txt", "finish_params.json"]);
    }
    const copied = statSync(join(out, "task_t1/repeat_2/a.txt"));
    expect(copied.ino).not.toBe(statSync(join(out, "artifacts/act-1/attempt-0/outputs/a.txt")).ino);
  });

  it("stays as it is when its result is only verified once more; the new line has the row, too", async () => {
    const out = tempDir();
    const store = await openDirectoryStore(join(out, "artifacts"));
    const raw = await openResultsFiles({ results: join(out, "results.jsonl"), failures: join(out, "failures.jsonl") });
    const rows: RowFile = {
      tasks: new Map(),
      ids: ["act-1"],
      placeOf: () => PLACE,
      rowOf: async () => ({ n: 1 }),
      close: async () => undefined,
    };
    const files = completing(raw, { out, rows, store });
    const verified = (verifications: number): ActivationResult => {
      const named = { protocol: "row" as const, resources_session_id: "s", row_sha256: "0".repeat(64) };
      const facts = {
        verified: verifications > 0,
        verifications,
        verification_cut: false,
        verification_failure: null,
        cleanup_error: null,
      };
      return { ...resultOf("act-1"), rollout: { ...named, ...facts } };
    };
    expect(await files.take(verified(0))).toBe(true);
    writeFileSync(join(out, "task_t1/repeat_2/graded.txt"), "by hand");
    expect([await files.take(verified(1)), await files.take(verified(1)), await files.take(verified(0))]).toEqual([true, false, false]);
    await files.close();
    expect(Object.keys(laid(out))).toEqual(["finish_params.json", "graded.txt"]);
    const lines = readFileSync(join(out, "results.jsonl"), "utf8").trim().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { row: { n: 1 }, rollout: { verifications: 0 } },
      { row: { n: 1 }, rollout: { verifications: 1 } },
    ]);
  });
});
