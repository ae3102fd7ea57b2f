// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { seconds } from "./duration.ts";
import { toolGrantSchema } from "./grant.ts";
import { activationIdSchema, episodeIdSchema, rolloutIdSchema, taskIdSchema } from "./identity.ts";

export const ACTIVATION_SCHEMA = "rollcall.activation/1";
/** Raised by each additive field; a worker parks a job whose minor is higher than its own. */
export const ACTIVATION_SCHEMA_MINOR = 0;
/** Codex 0.144.4 refuses longer prompts, in characters (codex: input_too_large). */
export const MAX_INPUT_CHARACTERS = 1_048_576;

const textPart = z.strictObject({ type: z.literal("input_text"), text: z.string() });
const inputMessage = z.strictObject({
  type: z.literal("message").optional(),
  role: z.enum(["system", "developer", "user"]),
  content: z.union([z.string(), z.array(textPart)]),
});
const inputSchema = z.union([z.string(), z.array(inputMessage)]);

/** A file placed before Codex starts. Exactly one source; the path is relative to the workdir, or absolute inside. */
const placedFileSchema = z.strictObject({
  path: z.string().min(1),
  /** UTF-8 text. */
  content: z.string().optional(),
  content_base64: z.base64().optional(),
  artifact: z.string().optional(),
  url: z.string().optional(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  executable: z.boolean().default(false),
});
export type PlacedFile = z.infer<typeof placedFileSchema>;

const secretOrPlain = z.union([z.string(), z.strictObject({ value: z.string(), secret: z.boolean() })]);

const sandboxSchema = z.strictObject({
  /** Absent = the worker's own default. */
  provider: z.string().optional(),
  image: z.string().optional(),
  workdir: z.string().optional(),
  files: z.array(placedFileSchema).default([]),
  env: z.record(z.string(), secretOrPlain).default({}),
  limits: z
    .strictObject({
      memory_mb: z.int().positive().optional(),
      cpus: z.number().positive().optional(),
      pids: z.int().positive().optional(),
      /** Of each single file; what all files take together has no limit of its own. */
      disk_mb: z.int().positive().optional(),
    })
    .prefault({}),
  network: z.strictObject({ mode: z.enum(["shared", "none", "allow"]) }).default({ mode: "shared" }),
});

/** Passed on as it is written. Codex sends "ultra" as another effort, and has models of the second kind of agents delegate unasked. */
export const reasoningEffortSchema = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"], {
  error: ({ input }) =>
    input === "ultra" ? '"ultra" is no effort of its own: it has the model delegate to agents unasked; "max" is the highest' : undefined,
});

const codexSchema = z.strictObject({
  /** Exact; absent = the worker's. */
  version: z
    .string()
    .regex(/^\d+\.\d+\.\d+$/)
    .optional(),
  /** Wall clock of one attempt's Codex. */
  timeout_seconds: seconds.max(604_800).default(600),
  mcp_startup_timeout_seconds: seconds.optional(),
  /**
   * Client-side limit of one tool call; Codex's own default is 300. Must exceed the slowest call: the server goes on
   * working after it, and the next call to that server waits until the first returns (seen in Codex 0.144.4).
   */
  mcp_tool_timeout_seconds: seconds.optional(),
  /** Bound of each phase after Codex: stopping, reading stderr, collecting. */
  session_close_timeout_seconds: seconds.max(604_800).default(60),
  /** Ends a turn of which nothing was heard for so long; must exceed the longest tool call and the longest thought. */
  idle_seconds: seconds.max(604_800).optional(),
  model_context_window: z.int().positive().optional(),
  model_auto_compact_token_limit: z.int().positive().optional(),
  reasoning_effort: reasoningEffortSchema.optional(),
  /** Whether the model is offered agents of its own. */
  subagents: z.enum(["off", "on"]).default("off"),
  /** "direct": every model sees the granted tools in its first request. "catalogue": as Codex' own catalogue has it (code mode, tool search). */
  tools: z.enum(["direct", "catalogue"]).default("direct"),
  /** Names among the worker's skills (its `skills_dir`); absent = all of them. */
  skills: z.array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "expected the name of a skill")).optional(),
  /** More of config.toml; keys that Rollcall sets itself are refused. No secrets: it is not sealed. */
  extra_config: z.record(z.string(), z.json()).optional(),
});

const modelSchema = z.strictObject({
  name: z.string().min(1).optional(),
  /** `{capture_key}` is replaced by the attempt's capture key. */
  base_url: z.string().optional(),
  /** Name of a variable of the worker; only those the worker's configuration allows. */
  api_key_env: z.string().optional(),
  /** A secret: sealed before it is queued. */
  api_key: z.string().min(1).optional(),
});

const outputsSchema = z.strictObject({
  /** Globs relative to the workdir. */
  paths: z.array(z.string().min(1)).default([]),
  max_file_mb: z.number().positive().default(100),
  max_total_mb: z.number().positive().default(500),
});

/** One session activation as it goes over the wire. Closed: unknown fields are refused. */
export const activationSchema = z.strictObject({
  schema: z.literal(ACTIVATION_SCHEMA).default(ACTIVATION_SCHEMA),
  schema_minor: z.int().min(0).default(ACTIVATION_SCHEMA_MINOR),
  activation_id: activationIdSchema,
  run_id: rolloutIdSchema,
  agent_session_id: z.string().min(1).optional(),
  episode_id: episodeIdSchema,
  task_id: taskIdSchema,
  input: inputSchema,
  instructions: z.string().optional(),
  tool_grants: z.array(toolGrantSchema).default([]),
  required_tools: z.array(z.string().min(1)).default([]),
  sandbox: sandboxSchema.prefault({}),
  sandbox_access: z.looseObject({}).optional(),
  codex: codexSchema.prefault({}),
  model: modelSchema.prefault({}),
  outputs: outputsSchema.prefault({}),
  /** Charged attempts allowed. */
  max_attempts: z.int().min(1).max(100).default(3),
  priority: z.enum(["high", "normal", "low"]).default("normal"),
  /** Results queue; null = nobody consumes, the result is only asked for. */
  reply_to: z
    .string()
    .regex(/^results[A-Za-z0-9_.-]*$/, 'expected "results" followed by letters, digits, underscore, dot or hyphen')
    .nullable()
    .default("results"),
  metadata: z.record(z.string(), z.string()).default({}),
  traceparent: z
    .string()
    .regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
    .optional(),
});

/** A validated activation, its ids derived and its defaults filled in. Holds secrets in clear: never serialise it. */
export type SessionActivation = z.infer<typeof activationSchema>;
/** What a producer writes. */
export type SessionActivationInput = z.input<typeof activationSchema>;
