// SPDX-License-Identifier: Apache-2.0
import { exec, say } from "../../../examples/stand-ins/script.ts";
import { CODE, steps, type Scenario } from "../scenario.ts";

const handIn = `text(JSON.stringify(await tools.mcp__office__finish({reason: "done", paths: ["{{workdir}}/report.md"]})));`;
const writes = `await tools.exec_command({cmd: "echo report > report.md"});`;

/** Scripts that a model of code mode writes, where it is offered tools as its catalogue entry has it. */
function codeMode(name: string, scripts: readonly string[], more: Partial<Scenario> = {}): Scenario {
  const script = steps(...scripts.map((javascript) => exec(javascript)), say("Done."));
  return { name: `code mode: ${name}`, kinds: CODE, script, codex: { tools: "catalogue" }, ends: "completed", ...more };
}

export const codeModes: readonly Scenario[] = [
  codeMode("a command and finish in one script", [`${writes} ${handIn}`]),
  codeMode("calls of two servers side by side", [
    `const [a, b] = await Promise.all([tools.mcp__archive__web_search({query: "rates"}), tools.mcp__office__web_search({query: "rates"})]);
     text(JSON.stringify([a, b])); ${writes}`,
    handIn,
  ]),
  codeMode("a script that throws", ["await tools.no_such_tool({});", `${writes} ${handIn}`]),
  codeMode("a tool error does not throw", [
    `const r = await tools.mcp__office__fetch_web_page({url: "https://nowhere.example/"}); text(String(r.isError)); ${writes}`,
    handIn,
  ]),
  codeMode("a patch", [`await tools.apply_patch("*** Begin Patch\\n*** Add File: report.md\\n+report\\n*** End Patch\\n"); ${handIn}`]),
  codeMode("a script that yields, and is waited for", [], {
    script: steps(
      exec(
        `// @exec: {"yield_time_ms": 300}\ntext("begun"); await tools.exec_command({cmd: "sleep 1; echo report > report.md", yield_time_ms: 5000}); ${handIn}`,
      ),
      { call: { name: "wait", args: { cell_id: "1", yield_time_ms: 20_000 } } },
      say("Done."),
    ),
  }),
  codeMode(
    "the turn ends while a call runs",
    [`${writes} ${handIn}`, `// @exec: {"yield_time_ms": 300}\nawait tools.mcp__slow__web_search({query: "rates"});`],
    {
      grants: [{ name: "office" }, { name: "slow" }],
      calls: { "slow.web_search": "0 ok, 1 not" },
      may: ["tool_outcome_unavailable"],
    },
  ),
];
