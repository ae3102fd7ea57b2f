// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile } from "../profile.ts";
import { ABSENT_MODEL_ALONE, SERVER_REASONS, TURN_FAILURES, UNREACHABLE_MODEL } from "./texts.ts";

export const codex0_171_0: CodexProfile = {
  version: "0.171.0",
  settings: {
    /** Otherwise an optional server that has not listed its tools after 1 s is left out in silence; 0 = wait for its startup_timeout_sec. */
    mcp_optional_startup_grace_ms: 0,
  },
  features: {
    memories: false,
    plugins: false,
    shell_snapshot: false,
    goals: false,
    /** On, a model may sleep for up to 12 hours in one call that no event shows. */
    sleep_tool: false,
    /** On, a model server that is gone is waited for without end. */
    unbounded_connection_retries: false,
  },
  /** Beside `features.multi_agent`, which is deprecated, it would print two error items in every run. */
  subagentsOff: { agents: { enabled: false } },
  readsProjectInstructions: false,
  longestCallName: 128,
  longestServerName: 102,
  longestToolName: null,
  /** Without it every `exec` of code mode is refused, and the session still ends with exit code 0. */
  companions: ["codex-code-mode-host"],
  turnFailures: [ABSENT_MODEL_ALONE, ...TURN_FAILURES],
  /** Unless features.unbounded_connection_retries is off, it waits without end. */
  unreachableModel: UNREACHABLE_MODEL,
  serverReasons: SERVER_REASONS,
  transcript: { modelCalls: "records", cacheWrites: true, nestedCommands: true },
};
