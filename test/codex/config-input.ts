// SPDX-License-Identifier: Apache-2.0
import type { CodexConfigInput } from "../../src/codex/config.ts";
import { activationSchema, type SessionActivationInput } from "../../src/contract/activation.ts";
import type { McpGrant } from "../../src/contract/grant.ts";
import { mcpGrantSchema } from "../../src/contract/grant.ts";
import { profileFor } from "../../src/codex/profile.ts";

/** What codexConfig needs, around an activation with these fields. */
export function configInput(
  fields: Partial<SessionActivationInput> = {},
  rest: Partial<Omit<CodexConfigInput, "activation">> = {},
): CodexConfigInput {
  const activation = activationSchema.parse({
    activation_id: "act-1",
    run_id: "run",
    episode_id: { rollout_id: "r1", attempt: 0 },
    task_id: { taskset: "t", task_id: "1" },
    input: "hello",
    ...fields,
  });
  return { profile: profileFor("0.144.4"), activation, captureKey: "r1", workdir: "/workspace", servers: {}, ...rest };
}

export function httpGrant(name: string, url: string, headers: Record<string, string> = {}, required = true): McpGrant {
  return mcpGrantSchema.parse({ name, required, type: "mcp", connection: { transport: "streamable_http", url, headers } });
}

export function stdioGrant(name: string, connection: object, required = true): McpGrant {
  return mcpGrantSchema.parse({ name, required, type: "mcp", connection: { transport: "stdio", ...connection } });
}
