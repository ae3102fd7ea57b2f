// SPDX-License-Identifier: Apache-2.0
// Changes the code of four parts bit by bit and counts which changes the tests notice:
//   npm run test:mutation [-- --part redact|classify|grants|config] [-- --file src/redact/tail.ts[:10-20]]
// Files go one after the other, since only what is mutated is slow. Ends with 1 when a part scores below 85 %.
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";

const WANTED = 85;
/** @type {Record<string, string[]>} */
const PARTS = {
  redact: "value tail text sources secret-set live error window-start stream matcher forms canonical automaton"
    .split(" ")
    .map((name) => `src/redact/${name}.ts`),
  classify: ["src/activation/classify.ts"],
  grants: ["src/contract/rules/grants.ts", "src/activation/plan.ts"],
  config: ["src/codex/config.ts", "src/codex/mcp-servers.ts", "src/codex/render-config.ts"],
};

const { part, file } = parseArgs({
  options: { part: { type: "string", multiple: true }, file: { type: "string", multiple: true } },
}).values;
const parts = file === undefined ? (part ?? Object.keys(PARTS)) : ["files"];
const filesOf = (/** @type {string} */ name) => {
  const files = file ?? PARTS[name];
  if (files === undefined) throw new Error(`There is no part ${name}; there are ${Object.keys(PARTS).join(", ")}.`);
  return files;
};

/** @param {string} mutate A file, or lines of one: file.ts:10-20. */
async function scoreOf(mutate) {
  const name = mutate.replaceAll(/[/:]/g, "_");
  const started = Date.now();
  /** @type {Record<string, unknown>} */
  const options = {
    mutate: [mutate],
    testRunner: "vitest",
    vitest: { configFile: "test/mutation/vitest.config.ts" },
    plugins: ["@stryker-mutator/vitest-runner"],
    coverageAnalysis: "perTest",
    concurrency: 1,
    reporters: ["json"],
    jsonReporter: { fileName: `reports/mutation/${name}.json` },
    ignorePatterns: ["/dist", "/quickstart-out", "/artifacts", "/reports", ".cache"],
    tsconfigFile: "none.json", // it would be rewritten with an API that TypeScript 7 does not have
    timeoutMS: 10_000,
    logLevel: "warn",
    allowConsoleColors: false,
  };
  const mutants = await new Stryker(options).runMutationTest();
  const killed = mutants.filter(({ status }) => status === "Killed" || status === "Timeout").length;
  const survivors = mutants.filter(({ status }) => status === "Survived" || status === "NoCoverage");
  for (const { location, status, mutatorName, replacement } of survivors) {
    const at = `${mutate.split(":")[0]}:${location.start.line}:${location.start.column}`;
    console.log(`  ${status} ${at} ${mutatorName}: ${(replacement ?? "").replaceAll(/\s+/g, " ").slice(0, 80)}`);
  }
  const total = killed + survivors.length;
  console.log(`${mutate}: ${share(killed, total)} (${killed} of ${total}), ${Math.round((Date.now() - started) / 1000)} s`);
  return { file: mutate, killed, total };
}

const share = (/** @type {number} */ killed, /** @type {number} */ total) => `${((100 * killed) / Math.max(1, total)).toFixed(1)} %`;

mkdirSync("reports/mutation", { recursive: true });
const summary = [];
for (const name of parts) {
  const files = [];
  for (const mutate of filesOf(name)) files.push(await scoreOf(mutate));
  const killed = files.reduce((sum, one) => sum + one.killed, 0);
  const total = files.reduce((sum, one) => sum + one.total, 0);
  console.log(`part ${name}: ${share(killed, total)} (${killed} of ${total})`);
  summary.push({ part: name, killed, total, files });
}
writeFileSync("reports/mutation/summary.json", `${JSON.stringify(summary, null, 2)}\n`);
process.exitCode = summary.every(({ killed, total }) => killed * 100 >= total * WANTED) ? 0 : 1;
