// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { episodeIdSchema, taskIdSchema } from "../contract/identity.ts";
import { fromIssue } from "../contract/rules/issues.ts";
import { refused } from "./problem.ts";

/** Longer ones would not fit into a cookie, which browsers and libraries cut at 4 KB. */
const sessionId = z.string().min(1).max(512);

const sandboxAccess = z.strictObject({
  connection: z.strictObject({
    kind: z.literal("direct"),
    provider_config_ref: z.string(),
    descriptor: z.record(z.string(), z.json()),
  }),
  workdir: z.string(),
});

/** `POST /v1/agent_sessions`. Grants are judged by admission, like those of any activation; they have an older name on the wire, too. */
export const seedSchema = z
  .strictObject({
    agent_session_id: sessionId,
    episode_id: episodeIdSchema,
    task_id: taskIdSchema,
    tool_accesses: z.array(z.unknown()).optional(),
    tool_grants: z.array(z.unknown()).optional(),
    sandbox_access: sandboxAccess.nullish(),
  })
  .refine(
    (seed) => seed.tool_accesses === undefined || seed.tool_grants === undefined,
    "tool_accesses and tool_grants are one field: give one of the two",
  )
  .transform(({ tool_accesses, tool_grants, ...seed }) => ({ ...seed, tool_accesses: tool_accesses ?? tool_grants ?? [] }));
export type SeedRequest = z.infer<typeof seedSchema>;

/** `POST /v1/agent_sessions/close`. */
export const closeSchema = z.strictObject({ agent_session_id: sessionId, episode_id: episodeIdSchema });
export type CloseRequest = z.infer<typeof closeSchema>;

/** What `GET /v1/agent_sessions/capabilities` answers. Upstream has such an answer too; its shape is not known, this one is ours. */
export const CAPABILITIES = {
  schema: "rollcall.agent_capabilities/1",
  calls_model_from_sandbox: true,
  tool_transports: ["mcp"],
  mcp_transports: ["streamable_http", "stdio"],
  sandbox_access: false,
} as const;

/** Throws GymProblem 422 that names every field at fault, and never a value. */
export function parseMessage<S extends z.ZodType>(schema: S, raw: unknown): z.infer<S> {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  throw refused(parsed.error.issues.flatMap((issue) => fromIssue(issue, raw)));
}
