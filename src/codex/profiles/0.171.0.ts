// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile } from "../profile.ts";

export const codex0_171_0: CodexProfile = {
  version: "0.171.0",
  features: {
    multi_agent: false,
    code_mode: false,
    plugins: false,
    shell_snapshot: false,
    goals: false,
  },
  longestServerName: null,
  longestToolName: null,
  transcript: { modelCalls: "records", cacheWrites: true, nestedCommands: true },
};
