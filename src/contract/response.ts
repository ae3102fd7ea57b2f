// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

const itemStatus = z.enum(["in_progress", "completed", "incomplete"]);

/** Responses API items, as far as a Codex session produces them. */
export const responseItemSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("message"),
    id: z.string(),
    role: z.literal("assistant"),
    status: itemStatus,
    content: z.array(z.strictObject({ type: z.literal("output_text"), text: z.string(), annotations: z.array(z.never()) })),
  }),
  z.strictObject({
    type: z.literal("reasoning"),
    id: z.string(),
    summary: z.array(z.strictObject({ type: z.literal("summary_text"), text: z.string() })),
  }),
  z.strictObject({
    type: z.literal("function_call"),
    id: z.string(),
    call_id: z.string(),
    name: z.string(),
    /** JSON text. */
    arguments: z.string(),
    status: itemStatus,
  }),
  z.strictObject({
    type: z.literal("function_call_output"),
    id: z.string(),
    call_id: z.string(),
    output: z.string(),
    status: itemStatus,
  }),
]);
export type ResponseItem = z.infer<typeof responseItemSchema>;

/** A counter is null where Codex did not report it reliably; null is not 0. */
export const usageSchema = z.strictObject({
  input_tokens: z.int().min(0),
  output_tokens: z.int().min(0),
  total_tokens: z.int().min(0),
  cached_input_tokens: z.int().min(1).nullable(),
  reasoning_output_tokens: z.int().min(1).nullable(),
  /** Input that the model server wrote to its cache. 0.144.4 does not pass it on. */
  cache_write_input_tokens: z.int().min(1).nullable().default(null),
});
export type Usage = z.infer<typeof usageSchema>;

/** A Responses API object: what an agent server answers for the activation. */
export const responseSchema = z.strictObject({
  id: z.string().regex(/^resp_[0-9a-f]+$/),
  object: z.literal("response"),
  /** Unix seconds. */
  created_at: z.number(),
  model: z.string(),
  status: z.enum(["completed", "incomplete"]),
  error: z.null(),
  incomplete_details: z.strictObject({ reason: z.literal("max_output_tokens") }).nullable(),
  output: z.array(responseItemSchema),
  usage: usageSchema.nullable(),
  metadata: z.record(z.string(), z.string()),
  parallel_tool_calls: z.literal(true),
  tool_choice: z.literal("auto"),
  tools: z.array(z.never()),
});
export type Response = z.infer<typeof responseSchema>;
