// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { mcp, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";

/** The five sample rows of GDPVal, their texts cut short. */
export const GDPVAL_ROWS = readFileSync(new URL("../fixtures/resources/gdpval.jsonl", import.meta.url), "utf8")
  .split("\n")
  .filter(Boolean)
  .map(
    (line) => JSON.parse(line) as { task_id: string; prompt: string; sector: string; reference_files: string[] } & Record<string, unknown>,
  );

/** What a deliverable holds, of small stand-ins for the reference files. */
export const deliverableOf = (files: readonly string[]): string => files.map((name) => `stand-in for ${name}\n`).join("");

/**
 * Tasks in our own form that do a row's work: reads the reference files, looks something up, writes report.txt and hands it in. The
 * row goes along whole.
 */
export function gdpvalTasks(): (Record<string, unknown> & { id: string })[] {
  return GDPVAL_ROWS.map((row) => {
    const names = row.reference_files.map((path) => basename(path));
    const script = {
      steps: [
        step(
          shell(`cat ${names.map((name) => JSON.stringify(name)).join(" ")} > report.txt`),
          mcp("office", "web_search", { query: "travel policy" }),
        ),
        step(mcp("office", "finish", { reason: `done for ${row.sector}`, paths: ["{{workdir}}/report.txt"] })),
      ],
    };
    return {
      id: row.task_id,
      input: `${row.prompt}\n${scriptLine(script)}`,
      files: names.map((path) => ({ path, content: `stand-in for ${path}\n` })),
      required_tools: ["finish"],
      task_data: row,
    };
  });
}
