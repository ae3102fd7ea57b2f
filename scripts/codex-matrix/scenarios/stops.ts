// SPDX-License-Identifier: Apache-2.0
import { exec, shell, step, withFault } from "../../../examples/stand-ins/script.ts";
import { ALL, CODE, finish, ONE, OPEN, report, steps, TOLD_WITH_OUTPUTS, type Scenario } from "../scenario.ts";

const short = { timeout_seconds: 12 };

export const stops: readonly Scenario[] = [
  {
    name: "wall clock in a command",
    kinds: ALL,
    script: steps(report(), shell("sleep 300")),
    codex: short,
    ends: "incomplete wall_clock limit",
    may: OPEN,
    last_answer: TOLD_WITH_OUTPUTS,
    slow: true,
  },
  {
    name: "wall clock in a script",
    kinds: CODE,
    script: steps(exec(`await tools.exec_command({cmd: "sleep 300", yield_time_ms: 30000});`)),
    codex: { ...short, tools: "catalogue" },
    ends: "incomplete wall_clock limit",
    may: OPEN,
    last_answer: TOLD_WITH_OUTPUTS,
    slow: true,
  },
  {
    name: "wall clock after finish",
    kinds: ONE,
    script: steps(report(), finish(), shell("sleep 300")),
    codex: short,
    ends: "incomplete wall_clock limit",
    gaps: ["submission_late"],
    may: OPEN,
    last_answer: TOLD_WITH_OUTPUTS,
    slow: true,
  },
  {
    name: "the model is never heard",
    kinds: ONE,
    script: { steps: [withFault(step(), { kind: "hang" })] },
    codex: short,
    ends: "incomplete wall_clock model_provider",
    may: [...OPEN, "cached_token_usage_unavailable", "reasoning_token_usage_unavailable"],
    slow: true,
  },
  {
    name: "the answer stalls",
    kinds: ONE,
    script: { steps: [step(report()), withFault(step(), { kind: "stall" })] },
    codex: short,
    ends: "incomplete wall_clock limit",
    may: OPEN,
    slow: true,
  },
  {
    name: "nothing is heard for 4 s",
    kinds: ONE,
    script: steps(report(), shell("sleep 300")),
    codex: { idle_seconds: 4 },
    ends: "incomplete idle limit",
    may: OPEN,
    last_answer: TOLD_WITH_OUTPUTS,
  },
  {
    name: "the model kills Codex",
    kinds: ONE,
    script: steps(report(), shell("sleep 0.5; pkill -9 -f codex; sleep 300")),
    ends: "failed killed_by_signal agent final",
    may: OPEN,
    last_answer: TOLD_WITH_OUTPUTS,
  },
];
