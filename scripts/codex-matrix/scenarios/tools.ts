// SPDX-License-Identifier: Apache-2.0
import { applyPatch, mcp, say, search, shell, step } from "../../../examples/stand-ins/script.ts";
import { ALL, finish, KNOWN, ONE, OPEN, report, steps, TOLD_WITH_OUTPUTS, work, type Scenario } from "../scenario.ts";

const missingPage = mcp("office", "fetch_web_page", { url: "https://nowhere.example/" });

/** As the MCP SDK's servers say it: an error that answers no request, so Codex waits for its answer. */
const forgotten = (status: string): Scenario => ({
  name: `the server forgot the MCP session (${status})`,
  kinds: ONE,
  script: work(),
  grants: [{ name: "office", server: `forgets sessions (${status})` }],
  codex: { timeout_seconds: 15 },
  ends: "incomplete wall_clock limit",
  gaps: ["mcp_session_lost"],
  may: OPEN,
  last_answer: TOLD_WITH_OUTPUTS,
  calls: { "office.finish": "0 ok, 1 not" },
  slow: true,
});

export const tools: readonly Scenario[] = [
  {
    name: "two grants, finish is called",
    kinds: ALL,
    script: steps(mcp("archive", "web_search", { query: "rates" }), report(), finish(), say("Done.")),
    ends: "completed",
  },
  {
    name: "several calls in one reply, one fails",
    kinds: ALL,
    script: { steps: [step(report(), missingPage, shell("exit 3")), step(finish())] },
    ends: "completed",
  },
  {
    name: "a required tool is not called",
    kinds: ALL,
    script: steps(report(), say("I think that is all.")),
    ends: "completed agent",
  },
  { name: "no grants", kinds: ALL, script: steps(say("Hello.")), grants: [], ends: "completed" },
  {
    name: "a patch",
    kinds: KNOWN,
    script: steps(applyPatch("*** Begin Patch\n*** Add File: report.md\n+report\n*** End Patch\n"), finish()),
    ends: "completed",
  },
  {
    name: "tool search, then finish",
    kinds: ["plain"],
    script: steps(search("hand the work in"), report(), finish()),
    codex: { tools: "catalogue" },
    ends: "completed",
  },
  {
    name: "a call takes longer than allowed",
    kinds: ONE,
    script: steps(mcp("slow", "web_search", { query: "rates" }), report(), finish()),
    grants: [{ name: "office" }, { name: "slow" }],
    codex: { mcp_tool_timeout_seconds: 1 },
    ends: "completed",
    calls: { "slow.web_search": "0 ok, 1 not" },
  },
  {
    name: "finish is answered 401",
    kinds: ONE,
    script: work(),
    grants: [{ name: "office", server: "tools/call 401" }],
    ends: "completed grant",
    gaps: ["required_tool_refused"],
    calls: { "office.finish": "0 ok, 1 not" },
  },
  forgotten("400"),
  forgotten("200"),
  {
    name: "asks for agents, which are off",
    kinds: ALL,
    script: steps(
      { call: { name: "spawn_agent", namespace: "collaboration", args: { task_name: "sub_one", message: "Go." } } },
      report(),
      finish(),
    ),
    ends: "completed",
  },
];
