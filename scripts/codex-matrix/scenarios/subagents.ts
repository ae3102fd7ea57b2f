// SPDX-License-Identifier: Apache-2.0
import { collaboration, exec, say, spawnAgent, step, withFault, type Script } from "../../../examples/stand-ins/script.ts";
import { CODE, finish, report, steps, work, type Scenario } from "../scenario.ts";

/** Much more than the root's, so that a sum without it is seen to be wrong. */
const usage = {
  input_tokens: 50_000,
  cached_input_tokens: 5_000,
  cache_write_input_tokens: 300,
  output_tokens: 500,
  reasoning_output_tokens: 50,
};
const dear = (script: Script): Script => ({ steps: script.steps.map((one) => ({ ...one, usage })) });
const waits = collaboration("wait_agent", { timeout_ms: 30_000 });

function agents(name: string, script: Script, more: Partial<Scenario> = {}): Scenario {
  return { name: `agents: ${name}`, kinds: CODE, script, codex: { subagents: "on" }, ends: "completed", ...more };
}

const javascript = `await tools.exec_command({cmd: "echo report > report.md"});
text(JSON.stringify(await tools.mcp__office__finish({reason: "done", paths: ["{{workdir}}/report.md"]})));`;

export const subagents: readonly Scenario[] = [
  agents("one hands the work in", steps(spawnAgent("sub_one", dear(work())), waits, say("Done."))),
  agents("one hands the work in by a script", steps(spawnAgent("sub_one", dear(steps(exec(javascript)))), waits, say("Done.")), {
    codex: { subagents: "on", tools: "catalogue" },
  }),
  agents(
    "one that begins with all that was said",
    steps(report(), spawnAgent("sub_one", dear(steps(finish(), say("Handed in."))), { fork_turns: "all" }), waits, say("Done.")),
  ),
  agents("one that begins with nothing", steps(spawnAgent("sub_one", dear(work()), { fork_turns: "none" }), waits, say("Done."))),
  agents(
    "an agent's agent",
    steps(
      report(),
      spawnAgent("sub_one", dear(steps(spawnAgent("sub_two", dear(steps(finish(), say("Two.")))), waits, say("One.")))),
      waits,
      say("Done."),
    ),
  ),
  agents(
    "one still runs at the end",
    steps(
      report(),
      finish(),
      spawnAgent("sub_one", { steps: [{ ...step(say("Too late.")), delay_ms: 60_000 }] }),
      { shell: "sleep 2" },
      say("Done."),
    ),
    { gaps: ["model_call_outcome_unknown"], may: ["model_call_join_key_unavailable"] },
  ),
  agents(
    "one that fails",
    steps(
      spawnAgent("sub_one", { steps: [withFault(step(), { kind: "status", status: 400, body: '{"error":{"message":"no"}}' })] }),
      waits,
      report(),
      finish(),
    ),
    { may: ["model_call_outcome_unknown"] },
  ),
];
