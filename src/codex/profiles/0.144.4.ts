// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile } from "../profile.ts";
import { SERVER_REASONS, TURN_FAILURES, UNREACHABLE_MODEL } from "./texts.ts";

export const codex0_144_4: CodexProfile = {
  version: "0.144.4",
  settings: {},
  features: {
    /** On, it makes one call of another model behind the session's back, in no event and no usage. */
    memories: false,
    /** On, it asks github.com and chatgpt.com, and waits 5 s for them where no DNS answers. */
    plugins: false,
    /** On, every command gets the whole environment, model key included, past shell_environment_policy (measured). */
    shell_snapshot: false,
    /** Its tools come with a stored session; the sessions we are to equal have none. */
    goals: false,
  },
  /**
   * The first takes the tools from every model but those whose catalogue names agents of the second kind. These are still offered
   * spawn_agent; the root is the one thread there may be, so it answers "agent thread limit reached". `[agents] enabled` is unknown.
   */
  subagentsOff: {
    features: { multi_agent: false, multi_agent_v2: { enabled: false, max_concurrent_threads_per_session: 1 } },
  },
  readsProjectInstructions: true,
  longestCallName: 64,
  /** With the longest tool name that counts here (19 characters), it must fit in 64. */
  longestServerName: 38,
  longestToolName: 64,
  /** Without codex-code-mode-host it runs the model's JavaScript in its own process. */
  companions: [],
  /** The code of a 429 is lost: a spent quota reads like too many requests. */
  turnFailures: TURN_FAILURES,
  unreachableModel: UNREACHABLE_MODEL,
  serverReasons: SERVER_REASONS,
  transcript: { modelCalls: "totals", cacheWrites: false, nestedCommands: false },
};
