// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

/** Token counts as Codex's transcript has them. */
const tokens = z.object({
  input_tokens: z.int().min(0),
  output_tokens: z.int().min(0),
  cached_input_tokens: z.int().min(0).catch(0),
  reasoning_output_tokens: z.int().min(0).catch(0),
});
export type TokenCounts = z.infer<typeof tokens>;

/** What one record of the transcript says, as far as we use it. */
export type TranscriptRecord =
  | { kind: "call"; call_id: string; name: string; namespace: string | null; arguments: string }
  /** What the model was given for a call. */
  | { kind: "output"; call_id: string; output: string }
  | { kind: "mcp_end"; call_id: string; server: string; tool: string; failed: boolean; text: string | null; duration_ms: number | null }
  | { kind: "command_end"; call_id: string; output: string; exit_code: number | null }
  | { kind: "patch_end"; call_id: string }
  | { kind: "totals"; total: TokenCounts }
  | { kind: "model_call"; response_id: string; usage: TokenCounts }
  | { kind: "answer" }
  | { kind: "compaction" }
  | { kind: "task_complete" }
  /** Known, and nothing that we need. */
  | { kind: "other" };

const OTHER: TranscriptRecord = { kind: "other" };
const text = z.object({ text: z.string() });
const output = z.union([z.string(), z.array(z.unknown()).transform((parts) => textsOf(parts) ?? "")]);
const duration = z.object({ secs: z.number(), nanos: z.number() }).transform(({ secs, nanos }) => secs * 1000 + nanos / 1e6);
const mcpResult = z.object({ content: z.array(z.unknown()).catch([]), isError: z.boolean().nullish() });
const answer = z.object({}).transform((): TranscriptRecord => ({ kind: "answer" }));
const callOutput = z
  .object({ call_id: z.string(), output })
  .transform((payload): TranscriptRecord => ({ kind: "output", call_id: payload.call_id, output: payload.output }));

/** `item_completed` of 0.171.0; for the items that are tools, its id is the call's. */
const completedItem = z.union([
  z
    .object({
      type: z.literal("CommandExecution"),
      id: z.string(),
      aggregated_output: z.string().catch(""),
      exit_code: z.number().nullable().catch(null),
    })
    .transform(({ id, aggregated_output, exit_code }): TranscriptRecord => ({
      kind: "command_end",
      call_id: id,
      output: aggregated_output,
      exit_code,
    })),
  z
    .object({
      type: z.literal("McpToolCall"),
      id: z.string(),
      server: z.string(),
      tool: z.string(),
      status: z.string(),
      result: mcpResult.nullish(),
      duration: duration.nullish(),
    })
    .transform((item): TranscriptRecord => ({
      kind: "mcp_end",
      call_id: item.id,
      server: item.server,
      tool: item.tool,
      failed: item.status === "failed",
      text: textsOf(item.result?.content ?? []),
      duration_ms: item.duration ?? null,
    })),
  z.object({ type: z.literal("FileChange"), id: z.string() }).transform(({ id }): TranscriptRecord => ({ kind: "patch_end", call_id: id })),
  z.object({ type: z.string() }).transform(() => OTHER),
]);

/** By `type`, or `type/payload.type` where the payload has one (0.144.4 and 0.171.0). */
const READERS: Readonly<Record<string, z.ZodType<TranscriptRecord>>> = {
  "response_item/function_call": z
    .object({ call_id: z.string(), name: z.string(), namespace: z.string().nullish(), arguments: z.string() })
    .transform((call) => ({ ...call, kind: "call" as const, namespace: call.namespace ?? null })),
  "response_item/custom_tool_call": z
    .object({ call_id: z.string(), name: z.string(), input: z.string().catch("") })
    .transform(({ call_id, name, input }) => ({ kind: "call" as const, call_id, name, namespace: null, arguments: input })),
  "response_item/function_call_output": callOutput,
  "response_item/custom_tool_call_output": callOutput,
  "response_item/reasoning": answer,
  "response_item/message": z
    .object({ role: z.string() })
    .transform(({ role }): TranscriptRecord => (role === "assistant" ? { kind: "answer" } : OTHER)),
  "event_msg/mcp_tool_call_end": z
    .object({
      call_id: z.string(),
      invocation: z.object({ server: z.string(), tool: z.string() }),
      duration: duration.nullish(),
      result: z.union([z.object({ Ok: mcpResult }), z.object({ Err: z.unknown() })]),
    })
    .transform(({ call_id, invocation, result, ...rest }): TranscriptRecord => ({
      kind: "mcp_end",
      call_id,
      ...invocation,
      failed: !("Ok" in result) || result.Ok.isError === true,
      text: "Ok" in result ? textsOf(result.Ok.content) : null,
      duration_ms: rest.duration ?? null,
    })),
  "event_msg/patch_apply_end": z.object({ call_id: z.string() }).transform(({ call_id }) => ({ kind: "patch_end" as const, call_id })),
  "event_msg/item_completed": z.object({ item: completedItem }).transform(({ item }) => item),
  "event_msg/token_count": z
    .object({ info: z.object({ total_token_usage: tokens }).nullish() })
    .transform(({ info }): TranscriptRecord => (info == null ? OTHER : { kind: "totals", total: info.total_token_usage })),
  "event_msg/task_complete": z.object({}).transform(() => ({ kind: "task_complete" as const })),
  token_usage_record: z
    .object({ response_id: z.string(), usage: tokens })
    .transform((record) => ({ ...record, kind: "model_call" as const })),
  compacted: z.object({}).transform(() => ({ kind: "compaction" as const })),
};
const PASSED_OVER = new Set([
  "session_meta",
  "turn_context",
  "world_state",
  "event_msg/task_started",
  "event_msg/user_message",
  "event_msg/agent_message",
  "event_msg/agent_reasoning",
  "event_msg/context_compacted",
  "event_msg/thread_settings_applied",
]);

const envelope = z.object({ timestamp: z.string().optional(), type: z.string(), payload: z.looseObject({}) });

export type ReadRecord =
  | { known: true; at: number | null; record: TranscriptRecord }
  /** A record of a kind that these Codex versions do not write. */
  | { known: false };

/** Reads one line's JSON value. null: it is no record, or one whose fields are not what they should be. */
export function parseTranscriptRecord(value: unknown): ReadRecord | null {
  const parsed = envelope.safeParse(value);
  if (!parsed.success) return null;
  const { type, payload, timestamp = "" } = parsed.data;
  const inner = payload["type"];
  const key = (type === "event_msg" || type === "response_item") && typeof inner === "string" ? `${type}/${inner}` : type;
  const seconds = Date.parse(timestamp) / 1000;
  const at = Number.isNaN(seconds) ? null : seconds;
  if (PASSED_OVER.has(key)) return { known: true, at, record: OTHER };
  const reader = Object.hasOwn(READERS, key) ? READERS[key] : undefined;
  if (reader === undefined) return { known: false };
  const read = reader.safeParse(payload);
  return read.success ? { known: true, at, record: read.data } : null;
}

/** The text blocks of a list of content, joined; null when it has none. */
function textsOf(content: readonly unknown[]): string | null {
  const texts = content.flatMap((part) => text.safeParse(part).data?.text ?? []);
  return texts.length === 0 ? null : texts.join("\n");
}
