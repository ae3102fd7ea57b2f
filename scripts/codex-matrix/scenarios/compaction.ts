// SPDX-License-Identifier: Apache-2.0
import { say, shell, step } from "../../../examples/stand-ins/script.ts";
import { ALL, finish, report, type Scenario } from "../scenario.ts";

const full = { input_tokens: 10_000 };

export const compaction: readonly Scenario[] = [
  {
    name: "a long conversation is summed up",
    kinds: ALL,
    script: { steps: [step(report()), { ...step(shell("echo 2")), usage: full }, step(finish()), step(say("Done."))] },
    codex: { model_auto_compact_token_limit: 9_000 },
    ends: "completed",
    gaps: { else: [], "0.144.4": ["compaction_accuracy_advisory"] },
  },
  {
    name: "summed up twice",
    kinds: ALL,
    script: {
      steps: [{ ...step(report()), usage: full }, { ...step(shell("echo 2")), usage: full }, step(finish()), step(say("Done."))],
    },
    codex: { model_auto_compact_token_limit: 9_000 },
    ends: "completed",
    gaps: { else: [], "0.144.4": ["compaction_accuracy_advisory"] },
  },
];
