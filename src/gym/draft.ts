// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import type { SessionActivation } from "../contract/activation.ts";
import { overlayGrants, type ToolGrant } from "../contract/grant.ts";
import { safeName } from "../contract/identity.ts";
import { admit, type AdmissionPolicy } from "../contract/refusals.ts";
import { expandRow } from "../rollout/task-row.ts";
import type { ActivationBody } from "./activation-body.ts";
import type { SeedRequest } from "./messages.ts";
import { AGENT_SERVER_RUN } from "./names.ts";
import type { AgentServerPorts } from "./ports.ts";
import { refused } from "./problem.ts";

/** Stands where the request that starts the session will put its own. */
const NO_INPUT = "-";
/** As upstream names tool accesses; stricter than a grant of ours, and still more than Codex can use. */
const ACCESS_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

export interface SeedDraft {
  /** Complete but for the input; holds secrets in clear. */
  activation: SessionActivation;
  /** The grants of the request, defaults filled in. */
  given: ToolGrant[];
}

/**
 * The activation that a seeded session will be. One attempt, under exactly the seeded capture key, and nobody but the waiting
 * caller wants its result. Throws GymProblem 422 with every reason why it cannot be run.
 */
export function draftOf(
  request: SeedRequest,
  { defaults, toolGrants, policy }: Pick<AgentServerPorts, "defaults" | "toolGrants" | "policy">,
): SeedDraft {
  const { agent_session_id, episode_id, task_id, tool_accesses, sandbox_access } = request;
  if (sandbox_access != null) {
    throw refused([
      { path: "sandbox_access", message: "attaching to a sandbox that somebody else made is not supported yet; leave it out" },
    ]);
  }
  const row = {
    // An id that is seeded again after its session was forgotten must not meet the earlier one's result.
    activation_id: `gym-${safeName(agent_session_id)}-${randomBytes(4).toString("hex")}`,
    run_id: AGENT_SERVER_RUN,
    agent_session_id,
    episode_id,
    task_id,
    input: NO_INPUT,
    tool_grants: tool_accesses,
    max_attempts: 1,
    reply_to: null,
  };
  const expanded = expandRow(row, defaults);
  if ("problems" in expanded) throw refused(expanded.problems);
  const activation = admitted(expanded.raw, policy);
  const given = activation.tool_grants;
  const badNames = given.flatMap(({ name }, index) =>
    ACCESS_NAME.test(name) ? [] : [{ path: `tool_accesses[${index}].name`, message: `it does not match ${ACCESS_NAME.source}` }],
  );
  if (badNames.length > 0) throw refused(badNames);
  return { activation: { ...activation, tool_grants: overlayGrants(toolGrants, given) }, given };
}

/** The draft with the request's own texts. Throws GymProblem 422. */
export function completeDraft(opened: Record<string, unknown>, body: ActivationBody, policy: AdmissionPolicy): SessionActivation {
  return admitted({ ...opened, ...body }, policy);
}

function admitted(raw: Record<string, unknown>, policy: AdmissionPolicy): SessionActivation {
  const admission = admit(raw, policy);
  if (admission.accepted) return admission.activation;
  throw refused(admission.refusals);
}
