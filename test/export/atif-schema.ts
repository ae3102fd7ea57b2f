// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

// ATIF v1.7 as Harbor's RFC 0001 and its published models have it: no other fields, and the rules between fields. Images, embedded
// subagents and copied context are left out: a session has none.
const extra = z.record(z.string(), z.unknown()).optional();
const text = z.string().optional();
const whole = z.int().optional();

const toolCallSchema = z.strictObject({
  tool_call_id: z.string(),
  function_name: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  extra,
});
const resultSchema = z.strictObject({ source_call_id: z.string().nullish(), content: z.string().nullish(), extra });
const metricsSchema = z.strictObject({
  prompt_tokens: whole,
  completion_tokens: whole,
  cached_tokens: whole,
  cost_usd: z.number().optional(),
  extra,
});

const AGENT_ONLY = ["model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"] as const;

const stepSchema = z
  .strictObject({
    step_id: z.int().min(1),
    timestamp: z.iso.datetime({ offset: true }).optional(),
    source: z.enum(["system", "user", "agent"]),
    model_name: text,
    reasoning_effort: z.union([z.string(), z.number()]).optional(),
    message: z.string(),
    reasoning_content: text,
    tool_calls: z.array(toolCallSchema).optional(),
    observation: z.strictObject({ results: z.array(resultSchema) }).optional(),
    metrics: metricsSchema.optional(),
    llm_call_count: z.int().min(0).optional(),
    extra,
  })
  .refine(
    (step) => step.source === "agent" || AGENT_ONLY.every((field) => step[field] === undefined),
    "fields of the agent on another's step",
  )
  .refine(
    (step) => step.llm_call_count !== 0 || (step.metrics === undefined && step.reasoning_content === undefined),
    "a step without a model call has neither metrics nor thoughts",
  )
  .refine((step) => {
    const ids = (step.tool_calls ?? []).map(({ tool_call_id }) => tool_call_id);
    return new Set(ids).size === ids.length;
  }, "two calls of a step have one id")
  .refine((step) => {
    const ids = new Set((step.tool_calls ?? []).map(({ tool_call_id }) => tool_call_id));
    return (step.observation?.results ?? []).every(({ source_call_id }) => source_call_id == null || ids.has(source_call_id));
  }, "a result of a call that is not in its step");

/** What a reader of ATIF v1.7 accepts. */
export const atifSchema = z.strictObject({
  schema_version: z.literal("ATIF-v1.7"),
  session_id: text,
  trajectory_id: text,
  agent: z.strictObject({
    name: z.string(),
    version: z.string(),
    model_name: text,
    tool_definitions: z.array(z.record(z.string(), z.unknown())).optional(),
    extra,
  }),
  steps: z
    .array(stepSchema)
    .min(1)
    .refine((steps) => steps.every(({ step_id }, at) => step_id === at + 1), "step ids do not count from 1"),
  notes: text,
  final_metrics: z
    .strictObject({
      total_prompt_tokens: whole,
      total_completion_tokens: whole,
      total_cached_tokens: whole,
      total_cost_usd: z.number().optional(),
      total_steps: z.int().min(0).optional(),
      extra,
    })
    .optional(),
  continued_trajectory_ref: text,
  extra,
});
