// SPDX-License-Identifier: Apache-2.0
// node scripts/chaos-table.mjs REPORT.json...: the tables of docs/chaos.md from reports of `npm run chaos -- --json`.
import { readFileSync } from "node:fs";

const reports = process.argv
  .slice(2)
  .map((file) => JSON.parse(readFileSync(file, "utf8")))
  .sort((one, other) => one.seed - other.seed);

function table(heads, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n");
}

const runs = reports.map(({ seed, faults, checks, repeats, ok }) => {
  const check = (start) => checks.find(({ name }) => name.startsWith(start));
  const breaches = (...starts) => starts.reduce((sum, start) => sum + check(start).breaches.length, 0);
  return [
    seed,
    `${check("store: one result").found} of ${check("store: one result").expected}`,
    breaches("results.jsonl: one line", "store: one result", "results queue"),
    `${faults.filter(({ injected }) => injected).length} of ${faults.length}`,
    check("each attempt has a number").found,
    repeats.length,
    breaches("nothing is left"),
    breaches("no byte of a secret"),
    ok ? "kept" : "BROKEN",
  ];
});
const heads = [
  "seed",
  "results",
  "lost or twice",
  "faults injected",
  "attempts",
  "after the first",
  "left over",
  "secret bytes",
  "promises",
];
console.log(`${table(heads, runs)}\n`);

const kinds = [...new Set(reports.flatMap(({ faults }) => faults.map(({ fault }) => fault)))].sort((one, other) =>
  one.localeCompare(other),
);
const counts = kinds.map((kind) => {
  const all = reports.flatMap(({ faults }) => faults.filter(({ fault, injected }) => fault === kind && injected));
  const seconds = all.map(({ from, to }) => (to - from) / 1_000);
  return [`\`${kind}\``, all.length, `${Math.min(...seconds).toFixed(1)} to ${Math.max(...seconds).toFixed(1)} s`];
});
console.log(table(["fault", "injected", "lasted, with finding whom to hit"], counts));
