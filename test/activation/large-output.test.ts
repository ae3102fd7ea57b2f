// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, shell, step } from "../../examples/stand-ins/script.ts";
import { withExcerpts } from "../../src/activation/excerpt.ts";
import { replayAttempt } from "../../src/activation/replay.ts";
import { Session } from "../../src/codex/session.ts";
import type { ResponseItem } from "../../src/contract/response.ts";
import { explain } from "../../src/activation/explain.ts";
import { attemptRunner, codexVersions } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const dir = suiteDir();
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
// Six digits and a line break each: any line of it is told from any other.
const FIVE_MB = "sleep 0.6; seq -w 100000 900000 | head -c 5000000; exit 3";
/** In the half MiB that Codex keeps of either end, and not in the few KiB that it shows its model. */
const DEEP = "150000";

const versions = await codexVersions();

/** How often a text stands in each file below a directory; those without it are left out. */
function occurrences(root: string, text: string): Record<string, number> {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const counts = files.map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return [path.slice(root.length + 1), readFileSync(path, "utf8").split(text).length - 1] as const;
  });
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

describe("5 MB of a command's output", () => {
  it.each(versions)("are kept once, and referenced wherever else they would stand ($name) [E24]", async ({ name, codex }) => {
    const model = await startModelServer({ scriptFor: () => ({ steps: [step(shell(FIVE_MB)), step(say("Done."))] }) });
    try {
      const runner = await attemptRunner(join(dir, name), codex);
      const row = { task_id: { taskset: "t", task_id: "big" }, input: "go", model: { base_url: model.captureBaseUrl, name: "m" } };
      const { result, read } = await runner.outcome(row);
      const root = join(runner.store, result!.activation_id);
      expect(occurrences(root, DEEP)).toEqual({ "attempt-0/events.jsonl": 1 });
      expect(readFileSync(join(root, "result.json")).length).toBeLessThan(300_000);

      const events = (await read("events.jsonl")).trim().split("\n");
      const outputs = events.map((line) => (JSON.parse(line) as [number, { item?: { aggregated_output?: string } }])[1].item);
      const whole = outputs.map((item) => item?.aggregated_output ?? "").find((text) => text.includes(DEEP))!;
      expect(whole.length).toBeGreaterThan(1_000_000);
      const shown = result!.response!.output.find((item) => item.type === "function_call_output")!.output;
      expect(shown).toContain("100000\n100001\n");
      expect(shown).toMatch(/\n\[exit code: 3\]$/);
      const told = result!.observations.gaps.find(({ code }) => code === "tool_output_shortened");
      const reference = JSON.parse(told?.detail ?? "null") as { sha256: string; whole_in: string };
      expect(reference).toMatchObject({ whole_in: "events.jsonl", sha256: sha256(`${whole}\n[exit code: 3]`) });
      expect(shown).toContain(`whole in events.jsonl, sha256 ${reference.sha256}`);

      expect((await replayAttempt(join(root, "attempt-0")))?.differences).toEqual([]);
      expect(JSON.stringify(explain(result!)).length).toBeLessThan(20_000);
    } finally {
      await model.close();
    }
  });
});

describe("a long tool output", () => {
  const facts = new Session("key").facts();
  const output = (text: string, id = "item_1"): ResponseItem => ({
    type: "function_call_output",
    id: `${id}_output`,
    call_id: id,
    output: text,
    status: "completed",
  });
  const excerpts = (items: ResponseItem[], told = items): ReturnType<typeof withExcerpts> => {
    const outputs = new Map(told.flatMap((item) => (item.type === "function_call_output" ? [[item.id, item.output]] : [])));
    return withExcerpts({ ...facts, items }, "key", (id) => outputs.get(id) ?? "");
  };
  const message: ResponseItem = {
    type: "message",
    id: "m",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "x".repeat(200_000), annotations: [] }],
  };

  it("keeps its ends; a shorter one, and the model's own words, stay whole", () => {
    const items = [output("y".repeat(65_536)), message];
    expect(excerpts(items)).toEqual({ facts: { ...facts, items }, gaps: [] });
    const whole = `${"a".repeat(32_768)}${"b".repeat(50_000)}${"c".repeat(32_768)}`;
    const { facts: short, gaps } = excerpts([output(whole), message]);
    const cut = `[... 50000 characters left out; whole in events.jsonl, sha256 ${sha256(whole)} ...]`;
    expect(short.items).toEqual([output(`${"a".repeat(32_768)}\n${cut}\n${"c".repeat(32_768)}`), message]);
    const detail = { tool_call_id: "item_1", bytes: whole.length, sha256: sha256(whole), whole_in: "events.jsonl" };
    expect(gaps).toEqual([{ code: "tool_output_shortened", invocation_id: "key", detail: JSON.stringify(detail) }]);
  });

  it("that only the transcript holds whole is referenced there", () => {
    const { facts: short, gaps } = excerpts([output(`begin${"d".repeat(70_000)}`)], [output("d".repeat(70_000))]);
    expect(JSON.stringify([short.items, gaps])).not.toContain("events.jsonl");
    expect(gaps[0]?.detail).toContain('"whole_in":"transcript.jsonl"');
  });

  it("is not cut within a character", () => {
    for (const shift of ["", "x"]) {
      const { facts: short } = excerpts([output(`${shift}${"😀".repeat(80_001)}`)]);
      expect(JSON.stringify(short.items)).not.toMatch(/\\ud[89a-f]/);
    }
  });

  it("that comes a thousand times does not fill the result with gaps", () => {
    const items = Array.from({ length: 1_000 }, (_, index) => output("z".repeat(65_537), `item_${index}`));
    const { gaps } = excerpts(items);
    expect(gaps).toHaveLength(101);
    expect(gaps.at(-1)?.detail).toBe('{"more":900}');
  });
});
