// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile } from "../profile.ts";
import { ABSENT_MODEL_ALONE, SERVER_REASONS, TURN_FAILURES, UNREACHABLE_MODEL } from "./texts.ts";

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
  turnFailures: [ABSENT_MODEL_ALONE, ...TURN_FAILURES],
  /** Unless features.unbounded_connection_retries is off, it waits without end. */
  unreachableModel: UNREACHABLE_MODEL,
  serverReasons: SERVER_REASONS,
};
