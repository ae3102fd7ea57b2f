// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

/** One output item of a reply of the model. Texts may hold `{{workdir}}`: the directory that Codex says it works in. */
const itemSchema = z.union([
  z.strictObject({ say: z.string() }),
  z.strictObject({ reasoning: z.string() }),
  z.strictObject({ shell: z.string() }),
  z.strictObject({ mcp: z.strictObject({ server: z.string(), tool: z.string(), args: z.record(z.string(), z.json()).default({}) }) }),
  /** Any other function tool of Codex, e.g. update_plan; in a namespace e.g. collaboration.spawn_agent. */
  z.strictObject({
    call: z.strictObject({ name: z.string(), namespace: z.string().optional(), args: z.record(z.string(), z.json()).default({}) }),
  }),
  /** A tool that takes a text: exec (code mode's JavaScript), apply_patch. */
  z.strictObject({ custom: z.strictObject({ name: z.string(), input: z.string() }) }),
  /** What Codex' own tool_search is asked, where a model does not see all tools at once. */
  z.strictObject({ search: z.string() }),
]);
export type Item = z.infer<typeof itemSchema>;

const stopping = {
  /** How often it strikes in one session, by default always; afterwards the step's reply is given. */
  times: z.int().positive().optional(),
  /** Strikes only in this attempt (the N of a capture key's `-a<N>`; 0 without). */
  attempt: z.int().nonnegative().optional(),
};
const streaming = {
  ...stopping,
  /** Items streamed to their end before the fault. */
  after: z.array(itemSchema).default([]),
};
const faultSchema = z.discriminatedUnion("kind", [
  /** An HTTP error instead of a stream. */
  z.strictObject({
    kind: z.literal("status"),
    ...stopping,
    status: z.int().min(200).max(599),
    body: z.string().default(""),
    headers: z.record(z.string(), z.string()).default({}),
  }),
  /** No answer at all, not even a status line. */
  z.strictObject({ kind: z.literal("hang"), ...stopping }),
  /** The connection is closed without an answer. */
  z.strictObject({ kind: z.literal("close"), ...stopping }),
  /** The stream begins and then says nothing more. */
  z.strictObject({ kind: z.literal("stall"), ...streaming }),
  /** The connection breaks in the middle of a message. */
  z.strictObject({ kind: z.literal("cut"), ...streaming }),
  /** response.incomplete: the model reached its output limit. */
  z.strictObject({ kind: z.literal("incomplete"), ...streaming, reason: z.string().default("max_output_tokens") }),
  /** response.failed. */
  z.strictObject({ kind: z.literal("failed"), ...streaming, code: z.string(), message: z.string() }),
]);
export type Fault = z.infer<typeof faultSchema>;

const usageSchema = z.strictObject({
  input_tokens: z.int(),
  cached_input_tokens: z.int(),
  /** 0.171.0 counts them, 0.144.4 does not. */
  cache_write_input_tokens: z.int(),
  output_tokens: z.int(),
  reasoning_output_tokens: z.int(),
});
export type Usage = z.infer<typeof usageSchema>;

const stepSchema = z.strictObject({
  /** Everything the model sends in this one reply; several calls are allowed. */
  reply: z.array(itemSchema),
  fault: faultSchema.optional(),
  /** In place of the server's reply delay. */
  delay_ms: z.int().nonnegative().optional(),
  usage: usageSchema.partial().optional(),
});
export type Step = z.infer<typeof stepSchema>;

/** Step n answers the n-th model call of a session; a call after the last step is answered with "Done.". */
export const scriptSchema = z.strictObject({ steps: z.array(stepSchema) });
export type Script = z.infer<typeof scriptSchema>;

export const say = (text: string): Item => ({ say: text });
export const reasoning = (text: string): Item => ({ reasoning: text });
export const shell = (command: string): Item => ({ shell: command });
export const mcp = (server: string, tool: string, args: Record<string, z.core.util.JSONType> = {}): Item => ({
  mcp: { server, tool, args },
});

export const exec = (javascript: string): Item => ({ custom: { name: "exec", input: javascript } });
export const applyPatch = (patch: string): Item => ({ custom: { name: "apply_patch", input: patch } });
export const search = (query: string): Item => ({ search: query });
export const collaboration = (name: string, args: Record<string, z.core.util.JSONType> = {}): Item => ({
  call: { name, namespace: "collaboration", args },
});
/** Starts another agent, which plays a script of its own. */
export const spawnAgent = (task_name: string, script: Script, more: Record<string, z.core.util.JSONType> = {}): Item =>
  collaboration("spawn_agent", { task_name, message: `Do your part.\n${scriptLine(script)}`, ...more });

/** One reply of these items. */
export const step = (...reply: Item[]): Step => ({ reply });

/** The same step with a fault before it. Throws ZodError when the fault is not one. */
export const withFault = (step: Step, fault: z.input<typeof faultSchema>): Step => ({ ...step, fault: faultSchema.parse(fault) });

/** The line by which a prompt carries its own script, so that a queue's tasks need no state shared with the server. */
export const scriptLine = (script: Script): string => `SCRIPT: ${JSON.stringify(script)}`;

/** The script in a prompt, null when it has none. Throws Error, saying what is wrong with it. */
export function scriptIn(prompt: string): Script | null {
  const json = /^SCRIPT: (.*)$/m.exec(prompt)?.[1];
  if (json === undefined) return null;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new Error('the prompt\'s SCRIPT: line is not JSON; it must be one line, SCRIPT: {"steps":[...]}', { cause: error });
  }
  const parsed = scriptSchema.safeParse(value);
  if (!parsed.success) throw new Error(`the prompt's SCRIPT: line is not a script: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
