// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { parseMessage } from "./messages.ts";
import { refused } from "./problem.ts";

/** Parameters of the Responses API that a Codex session cannot honour: null, or not there. */
const UNSUPPORTED = [
  "max_output_tokens",
  "temperature",
  "top_p",
  "reasoning",
  "max_tool_calls",
  "previous_response_id",
  "prompt",
  "text",
  "context_management",
  "conversation",
  "moderation",
  "top_logprobs",
  "truncation",
  "include",
  "service_tier",
  "safety_identifier",
  "user",
  "store",
  "stream_options",
  "prompt_cache_key",
  "prompt_cache_retention",
] as const;

/** They would change the model call, which is Codex's own. */
export const UNSUPPORTED_METADATA = ["chat_template_kwargs", "extra_body"] as const;

const unsupported = z.null({ error: "a Codex session does not support it; leave it out" }).optional();
const only = <T extends string | boolean>(value: T) =>
  z.literal(value, { error: `a Codex session only supports ${JSON.stringify(value)}` }).nullish();

/** A request that a Codex session can honour, without judging its input. */
export const bodySchema = z.strictObject({
  /** Judged by admission, like that of any activation. */
  input: z.unknown(),
  instructions: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  model: z.string().nullish(),
  tools: z.array(z.unknown()).max(0, { error: "the tools of a Codex session are its grants; leave it empty" }).nullish(),
  tool_choice: only("auto"),
  parallel_tool_calls: only(true),
  background: only(false),
  stream: only(false),
  ...(Object.fromEntries(UNSUPPORTED.map((name) => [name, unsupported])) as Record<(typeof UNSUPPORTED)[number], typeof unsupported>),
});

/** What of a request body is used; equal bodies give equal ones. */
export interface ActivationBody {
  input: unknown;
  instructions?: string;
  metadata: Record<string, string>;
}

/** `POST .../v1/responses`. Pure; throws GymProblem 422. `model`: the one that the session will use; null = Codex's own choice. */
export function parseActivationBody(raw: unknown, model: string | null): ActivationBody {
  const body = parseMessage(bodySchema, raw);
  const { input, instructions, metadata } = body;
  if (body.model != null && body.model !== model) {
    throw refused([{ path: "model", message: `the sessions of this server use ${model ?? "Codex's own model"}; name that one, or none` }]);
  }
  const bad = UNSUPPORTED_METADATA.filter((name) => metadata != null && Object.hasOwn(metadata, name));
  if (bad.length > 0) throw refused(bad.map((name) => ({ path: `metadata.${name}`, message: "a Codex session does not support it" })));
  return { input, ...(instructions == null ? {} : { instructions }), metadata: metadata ?? {} };
}
