// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile } from "../profile.ts";

export const codex0_144_4: CodexProfile = {
  version: "0.144.4",
  features: {
    multi_agent: false,
    code_mode: false,
    /** On, it asks github.com and chatgpt.com, and waits 5 s for them where no DNS answers. */
    plugins: false,
    /** On, every command gets the whole environment, model key included, past shell_environment_policy (measured). */
    shell_snapshot: false,
    /** Its tools come with a stored session; the sessions we are to equal have none. */
    goals: false,
  },
  /** "mcp__" + name + "__" + tool must fit in 64 characters. */
  longestServerName: 38,
  longestToolName: 64,
  transcript: { modelCalls: "totals", cacheWrites: false, nestedCommands: false },
};
