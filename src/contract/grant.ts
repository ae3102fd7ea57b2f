// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

/**
 * Permission for one session to use one tool server. A name is any string here: whether Codex can use it decides between
 * refusing a required grant and leaving out an optional one (see refusals.ts and activation/plan.ts).
 */
const common = {
  name: z.string().max(256),
  required: z.boolean(),
  /** Tools the server must offer, by its own names for them; checked before Codex starts. */
  expected_tools: z.array(z.string().min(1)).optional(),
  /** Whether the worker connects once itself before Codex starts. Absent: for optional grants, and where tools are expected. */
  preflight: z.boolean().optional(),
};

const httpUrl = z.string().refine(isHttpUrl, "expected an absolute http or https URL");

const streamableHttpSchema = z.strictObject({
  transport: z.literal("streamable_http"),
  url: httpUrl,
  /** Values are secrets. */
  headers: z.record(z.string(), z.string()).default({}),
});

const stdioSchema = z.strictObject({
  transport: z.literal("stdio"),
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  /** Values are secrets, exactly like header values. */
  env: z.record(z.string(), z.string()).default({}),
  /** Absolute inside the sandbox; null = the workdir. */
  cwd: z.string().nullable().default(null),
});

export const mcpGrantSchema = z.strictObject({
  ...common,
  type: z.literal("mcp"),
  connection: z.discriminatedUnion("transport", [streamableHttpSchema, stdioSchema]),
});
export type McpGrant = z.infer<typeof mcpGrantSchema>;

const directHttpGrantSchema = z.strictObject({
  ...common,
  type: z.literal("direct_http"),
  base_url: httpUrl,
  cookies: z.record(z.string(), z.string()).default({}),
  headers: z.record(z.string(), z.string()).default({}),
});

export const toolGrantSchema = z.discriminatedUnion("type", [mcpGrantSchema, directHttpGrantSchema]);
export type ToolGrant = z.infer<typeof toolGrantSchema>;

/**
 * What Codex accepts as a server name (seen in 0.144.4). `__proto__` matches and is still refused: as a key it would
 * vanish from every JavaScript object on the way.
 */
export function isUsableServerName(name: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(name) && name !== "__proto__";
}

/** Absolute, http or https, and without the blanks or control characters that URL parsers quietly remove. */
function isHttpUrl(text: string): boolean {
  if (/[\s\u0000-\u001f\u007f]/.test(text) || !URL.canParse(text)) return false;
  const { protocol } = new URL(text);
  return protocol === "http:" || protocol === "https:";
}

/** Grants of a configuration overlaid by those of an episode, by name; nothing is merged inside a grant. */
export function overlayGrants(configured: readonly ToolGrant[], episode: readonly ToolGrant[]): ToolGrant[] {
  const names = new Set(episode.map((grant) => grant.name));
  return [...configured.filter((grant) => !names.has(grant.name)), ...episode];
}
