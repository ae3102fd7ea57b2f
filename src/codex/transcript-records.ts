// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import type { Tokens } from "../contract/result.ts";

/** Token counts as Codex's transcript has them; 0.144.4 says nothing of what was written to a cache. */
const tokens = z.object({
  input_tokens: z.int().min(0),
  cached_input_tokens: z.int().min(0).catch(0),
  cache_write_input_tokens: z.int().min(0).nullable().catch(null),
  output_tokens: z.int().min(0),
  reasoning_output_tokens: z.int().min(0).catch(0),
}) satisfies z.ZodType<Tokens>;

/** Whose transcript it is. */
export interface ThreadMeta {
  thread_id: string;
  /** The root thread's id. */
  session_id: string | null;
  parent_thread_id: string | null;
  /** e.g. "/root/sub_one"; null where the version, or the way in which it was spawned, has none. */
  agent_path: string | null;
  /** It begins with a copy of its parent's. */
  forked: boolean;
}

/** What one record of the transcript says, as far as we use it. */
export type TranscriptRecord =
  | { kind: "meta"; meta: ThreadMeta }
  | { kind: "turn_started"; turn_id: string }
  /** `failed` null: the version does not tell. */
  | { kind: "turn_ended"; said: string | null; failed: boolean | null }
  | { kind: "turn_aborted" }
  | { kind: "call"; call_id: string; name: string; namespace: string | null; arguments: string }
  /** What the model was given for a call. */
  | { kind: "output"; call_id: string; output: string }
  | {
      kind: "mcp_end";
      call_id: string;
      server: string;
      tool: string;
      /** JSON text; null = not told. */
      arguments: string | null;
      failed: boolean;
      text: string | null;
      /** Why it got no answer, in Codex's words. */
      error: string | null;
      duration_ms: number | null;
    }
  | { kind: "command_end"; call_id: string; command: string; output: string; exit_code: number | null }
  | { kind: "patch_end"; call_id: string; failed: boolean; changes: string }
  /** null: the model server told no tokens. */
  | { kind: "totals"; total: Tokens | null }
  /** `thread_id` null: of the thread whose transcript it is. */
  | { kind: "model_call"; response_id: string; thread_id: string | null; usage: Tokens }
  /** `text` null: a thought. */
  | { kind: "answer"; text: string | null }
  | { kind: "spawned"; thread_id: string; call_id: string }
  | { kind: "compaction" }
  /** Known, and nothing that we need. */
  | { kind: "other" };

const OTHER: TranscriptRecord = { kind: "other" };
const text = z.object({ text: z.string() });
const output = z.union([z.string(), z.array(z.unknown()).transform((parts) => textsOf(parts) ?? "")]);
const duration = z.object({ secs: z.number(), nanos: z.number() }).transform(({ secs, nanos }) => secs * 1000 + nanos / 1e6);
const mcpResult = z.object({ content: z.array(z.unknown()).catch([]), isError: z.boolean().nullish() });
const given = z
  .unknown()
  .optional()
  .transform((value) => jsonOf(value));
const changes = z
  .record(z.string(), z.object({ type: z.string() }))
  .catch({})
  .transform((files) => JSON.stringify({ changes: Object.entries(files).map(([path, { type }]) => ({ path, kind: type })) }));
const callOutput = z
  .object({ call_id: z.string(), output })
  .transform((payload): TranscriptRecord => ({ kind: "output", call_id: payload.call_id, output: payload.output }));
const totals = z
  .object({ info: z.object({ total_token_usage: tokens }).nullish() })
  .transform(({ info }): TranscriptRecord => ({ kind: "totals", total: info?.total_token_usage ?? null }));

/** `item_completed` of 0.171.0; for the items that are tools, its id is the call's. */
const completedItem = z.union([
  z
    .object({
      type: z.literal("CommandExecution"),
      id: z.string(),
      command: z.array(z.string()).catch([]),
      aggregated_output: z.string().catch(""),
      exit_code: z.number().nullable().catch(null),
    })
    .transform(({ id, command, aggregated_output, exit_code }): TranscriptRecord => ({
      kind: "command_end",
      call_id: id,
      command: command.at(-1) ?? "",
      output: aggregated_output,
      exit_code,
    })),
  z
    .object({
      type: z.literal("McpToolCall"),
      id: z.string(),
      server: z.string(),
      tool: z.string(),
      arguments: given,
      status: z.string(),
      result: mcpResult.nullish(),
      error: z.object({ message: z.string() }).nullish().catch(null),
      duration: duration.nullish(),
    })
    .transform((item): TranscriptRecord => ({
      kind: "mcp_end",
      call_id: item.id,
      server: item.server,
      tool: item.tool,
      arguments: item.arguments,
      failed: item.status === "failed",
      text: textsOf(item.result?.content ?? []),
      error: item.error?.message ?? null,
      duration_ms: item.duration ?? null,
    })),
  z
    .object({ type: z.literal("FileChange"), id: z.string(), status: z.string().catch(""), changes })
    .transform((item): TranscriptRecord => ({
      kind: "patch_end",
      call_id: item.id,
      failed: item.status === "failed",
      changes: item.changes,
    })),
  z
    .object({ type: z.literal("SubAgentActivity"), kind: z.literal("started"), id: z.string(), agent_thread_id: z.string() })
    .transform((item): TranscriptRecord => ({ kind: "spawned", thread_id: item.agent_thread_id, call_id: item.id })),
  /** Of agents of the first kind; only a spawn names one thread. */
  z
    .object({
      type: z.literal("CollabAgentToolCall"),
      tool: z.literal("spawn_agent"),
      id: z.string(),
      receiver_thread_ids: z.tuple([z.string()]),
    })
    .transform((item): TranscriptRecord => ({ kind: "spawned", thread_id: item.receiver_thread_ids[0], call_id: item.id })),
  z.object({ type: z.string() }).transform(() => OTHER),
]);

/** By `type`, or `type/payload.type` where the payload has one (0.144.4 and 0.171.0). */
const READERS: Readonly<Record<string, z.ZodType<TranscriptRecord>>> = {
  session_meta: z
    .object({
      id: z.string(),
      session_id: z.string().nullish(),
      parent_thread_id: z.string().nullish(),
      forked_from_id: z.string().nullish(),
      agent_path: z.string().nullish(),
    })
    .transform((meta): TranscriptRecord => ({
      kind: "meta",
      meta: {
        thread_id: meta.id,
        session_id: meta.session_id ?? null,
        parent_thread_id: meta.parent_thread_id ?? null,
        agent_path: meta.agent_path ?? null,
        forked: (meta.forked_from_id ?? null) !== null,
      },
    })),
  "response_item/function_call": z
    .object({ call_id: z.string(), name: z.string(), namespace: z.string().nullish(), arguments: z.string() })
    .transform((call) => ({ ...call, kind: "call" as const, namespace: call.namespace ?? null })),
  "response_item/custom_tool_call": z
    .object({ call_id: z.string(), name: z.string(), input: z.string().catch("") })
    .transform(({ call_id, name, input }) => ({ kind: "call" as const, call_id, name, namespace: null, arguments: input })),
  "response_item/tool_search_call": z
    .object({ call_id: z.string() })
    .transform(({ call_id }) => ({ kind: "call" as const, call_id, name: "tool_search", namespace: null, arguments: "" })),
  "response_item/tool_search_output": z
    .object({ call_id: z.string() })
    .transform(({ call_id }) => ({ kind: "output" as const, call_id, output: "" })),
  "response_item/function_call_output": callOutput,
  "response_item/custom_tool_call_output": callOutput,
  "response_item/reasoning": z.object({}).transform((): TranscriptRecord => ({ kind: "answer", text: null })),
  "response_item/message": z
    .object({ role: z.string(), content: z.array(z.unknown()).catch([]) })
    .transform(({ role, content }): TranscriptRecord => (role === "assistant" ? { kind: "answer", text: textsOf(content) } : OTHER)),
  "event_msg/mcp_tool_call_end": z
    .object({
      call_id: z.string(),
      invocation: z.object({ server: z.string(), tool: z.string(), arguments: given }),
      duration: duration.nullish(),
      result: z.union([z.object({ Ok: mcpResult }), z.object({ Err: z.unknown() })]),
    })
    .transform(({ call_id, invocation, result, ...rest }): TranscriptRecord => ({
      kind: "mcp_end",
      call_id,
      ...invocation,
      failed: !("Ok" in result) || result.Ok.isError === true,
      text: "Ok" in result ? textsOf(result.Ok.content) : null,
      error: "Ok" in result || typeof result.Err !== "string" ? null : result.Err,
      duration_ms: rest.duration ?? null,
    })),
  "event_msg/patch_apply_end": z
    .object({ call_id: z.string(), success: z.boolean().catch(true), changes })
    .transform((end) => ({ kind: "patch_end" as const, call_id: end.call_id, failed: !end.success, changes: end.changes })),
  "event_msg/item_completed": z.object({ item: completedItem }).transform(({ item }) => item),
  "event_msg/token_count": totals,
  "event_msg/task_started": z
    .object({ turn_id: z.string().catch("") })
    .transform(({ turn_id }) => ({ kind: "turn_started" as const, turn_id })),
  "event_msg/task_complete": z
    .object({ last_agent_message: z.string().nullable().catch(null), error: z.unknown().optional() })
    .transform(({ last_agent_message, error }) => ({
      kind: "turn_ended" as const,
      said: last_agent_message,
      failed: error === undefined ? null : error !== null,
    })),
  "event_msg/turn_aborted": z.object({}).transform(() => ({ kind: "turn_aborted" as const })),
  "event_msg/sub_agent_activity": z
    .object({ event_id: z.string(), agent_thread_id: z.string(), kind: z.string() })
    .transform((activity): TranscriptRecord =>
      activity.kind === "started" ? { kind: "spawned", thread_id: activity.agent_thread_id, call_id: activity.event_id } : OTHER,
    ),
  token_usage_record: z
    .object({ response_id: z.string(), thread_id: z.string().nullable().catch(null), usage: tokens })
    .transform((record) => ({ ...record, kind: "model_call" as const })),
  compacted: z.object({}).transform(() => ({ kind: "compaction" as const })),
};
const PASSED_OVER = new Set([
  "turn_context",
  "world_state",
  "inter_agent_communication_metadata",
  "response_item/additional_tools",
  "response_item/agent_message",
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

/** null: there is nothing, or it is nested deeper than the stack (the model can write there). */
function jsonOf(value: unknown): string | null {
  try {
    return JSON.stringify(value) ?? null;
  } catch {
    return null;
  }
}

/** The text blocks of a list of content, joined; null when it has none. */
function textsOf(content: readonly unknown[]): string | null {
  const texts = content.flatMap((part) => text.safeParse(part).data?.text ?? []);
  return texts.length === 0 ? null : texts.join("\n");
}
