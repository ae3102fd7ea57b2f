// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { openEvidence } from "../../src/artifacts/open-evidence.ts";
import type { ResponseItem } from "../../src/contract/response.ts";
import { exportRun } from "../../src/export/export-run.ts";
import type { ExportFormat } from "../../src/export/formats.ts";
import { madeResult, writeRun } from "../report/results-of.ts";
import { tempDir } from "../support/temp-dir.ts";
import { atifSchema } from "./atif-schema.ts";

let out: string;
beforeEach(() => {
  out = tempDir();
});

const said = (text: string): ResponseItem[] => [
  { type: "message", id: "m", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] },
];
const exported = (format: ExportFormat, to: string | null = null) => exportRun({ out, format, to, partial: false, openEvidence });
const linesOf = (...path: string[]): unknown[] =>
  readFileSync(join(out, ...path), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);

function writePrompt(id: string, prompt: string): void {
  const directory = join(out, "artifacts", id, "attempt-0");
  mkdirSync(directory, { recursive: true });
  const records = [
    { type: "session_meta", payload: {} },
    { type: "event_msg", payload: { type: "user_message", message: prompt } },
  ];
  writeFileSync(join(directory, "transcript.jsonl"), records.map((record) => `${JSON.stringify(record)}\n`).join(""));
}

describe("an export", () => {
  it("has the last result of each rollout, its prompt, and what else is known of it", async () => {
    const quarantined = {
      path: "quarantine/a.txt",
      kind: "output" as const,
      source: "/workspace/a.txt",
      bytes: 3,
      sha256: "0".repeat(64),
      uri: "dir:a",
      quarantined: true,
    };
    await writeRun(out, [
      madeResult({ id: "a", conversation: said("first") }),
      madeResult({ id: "b", status: "failed", cause: "turn_failed", conversation: said("before it failed") }),
      madeResult({ id: "c", status: "refused", cause: "invalid_field" }),
      { ...madeResult({ id: "a", conversation: said("second"), reward: 1 }), generation: 1, artifacts: [quarantined] },
    ]);
    writePrompt("a", "What was asked");
    const { directory, about } = await exported("openai-chat");
    expect(directory).toBe(join(out, "export", "openai-chat"));
    expect(about).toMatchObject({
      rollouts: 3,
      exported: 2,
      no_conversation: ["c"],
      unreadable: [],
      without_prompt: 1,
      with_quarantined_artifacts: 1,
    });
    expect(linesOf("export", "openai-chat", "openai-chat.jsonl")).toEqual([
      { messages: [{ role: "assistant", content: "before it failed" }] },
      {
        messages: [
          { role: "user", content: "What was asked" },
          { role: "assistant", content: "second" },
        ],
      },
    ]);
    expect(linesOf("export", "openai-chat", "index.jsonl")).toMatchObject([
      { line: 1, activation_id: "b", status: "failed", failure: { cause_code: "turn_failed" }, prompt_known: false },
      { line: 2, activation_id: "a", reward: 1, artifacts: [{ path: "quarantine/a.txt", quarantined: true }] },
    ]);
    expect(readdirSync(directory).sort()).toEqual(["export.json", "index.jsonl", "openai-chat.jsonl"]);
  });

  it("as ATIF is one valid file a rollout, and can be written again", async () => {
    await writeRun(out, [madeResult({ id: "a", conversation: said("one") }), madeResult({ id: "b", conversation: said("two") })]);
    await exported("atif");
    const { directory } = await exported("atif");
    expect(readdirSync(directory).sort()).toEqual(["a.json", "b.json", "export.json", "index.jsonl"]);
    for (const name of ["a.json", "b.json"]) atifSchema.parse(JSON.parse(readFileSync(join(directory, name), "utf8")));
    expect(linesOf("export", "atif", "index.jsonl")).toMatchObject([{ file: "a.json" }, { file: "b.json" }]);
  });

  it("never leaves its directory for an id that is a path", async () => {
    await writeRun(out, [madeResult({ id: "../../escaped", conversation: said("x") })]);
    expect((await exported("atif")).about).toMatchObject({ exported: 0, unreadable: ["../../escaped"] });
    expect(readdirSync(out)).not.toContain("escaped.json");
  });

  it("does not overwrite another run's, or anything else", async () => {
    await writeRun(out, [madeResult({ id: "a", conversation: said("x") })]);
    const to = tempDir();
    await exported("responses", to);
    await expect(exported("atif", to)).rejects.toMatchObject({
      code: "export_foreign",
      message: expect.stringContaining("responses export of run run-1"),
    });
    writeFileSync(join(to, "export.json"), "{}");
    await expect(exported("responses", to)).rejects.toMatchObject({ code: "export_foreign" });
  });
});
