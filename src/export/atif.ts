// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import type { AboutRollout, Trajectory } from "./trajectory.ts";
import { type Call, turnsOf, type Turn } from "./turns.ts";

/** Harbor's Agent Trajectory Interchange Format (RFC 0001), the version that is written. */
export const ATIF_VERSION = "ATIF-v1.7";

interface AtifToolCall {
  tool_call_id: string;
  function_name: string;
  arguments: Record<string, unknown>;
  extra?: Record<string, unknown>;
}

interface AtifStep {
  /** From 1, without holes. */
  step_id: number;
  timestamp?: string;
  source: "user" | "agent";
  message: string;
  reasoning_content?: string;
  tool_calls?: AtifToolCall[];
  /** Each result names a call of the same step. */
  observation?: { results: { source_call_id: string; content: string }[] };
}

export interface AtifTrajectory {
  schema_version: typeof ATIF_VERSION;
  session_id: string;
  trajectory_id: string;
  agent: { name: "codex"; version: string; model_name?: string; extra: { harness: "rollcall"; harness_version: string | null } };
  steps: AtifStep[];
  notes: string;
  final_metrics: {
    total_prompt_tokens?: number;
    total_completion_tokens?: number;
    total_cached_tokens?: number;
    total_steps: number;
    extra?: { reasoning_output_tokens?: number; cache_write_input_tokens?: number };
  };
  extra: { rollcall: AboutRollout };
}

const NOTES =
  "Codex does not tell which items came in one answer of the model, so a step is what a thought, a message or an answered call sets apart; " +
  "llm_call_count and metrics by step are not known. Secrets were replaced before anything was recorded.";

/** Pure. */
export function atifTrajectory(trajectory: Trajectory): AtifTrajectory {
  const { about, prompt, items, model, codex_version, worker_version, capture_key, started_at, usage } = trajectory;
  const asked: Omit<AtifStep, "step_id">[] =
    prompt === null ? [] : [{ source: "user", message: prompt, ...(started_at === null ? {} : { timestamp: started_at }) }];
  const records = new Map(trajectory.tool_calls.map((record) => [record.tool_call_id, record]));
  const steps = [...asked, ...turnsOf(items).map((turn) => agentStep(turn, records))].map((step, at) => ({ step_id: at + 1, ...step }));
  const more = {
    ...(usage?.reasoning_output_tokens == null ? {} : { reasoning_output_tokens: usage.reasoning_output_tokens }),
    ...(usage?.cache_write_input_tokens == null ? {} : { cache_write_input_tokens: usage.cache_write_input_tokens }),
  };
  return {
    schema_version: ATIF_VERSION,
    session_id: about.activation_id,
    trajectory_id: capture_key,
    agent: {
      name: "codex",
      version: codex_version ?? "unknown",
      ...(model === null ? {} : { model_name: model }),
      extra: { harness: "rollcall", harness_version: worker_version },
    },
    steps,
    notes: NOTES,
    final_metrics: {
      ...(usage === null ? {} : { total_prompt_tokens: usage.input_tokens, total_completion_tokens: usage.output_tokens }),
      ...(usage?.cached_input_tokens == null ? {} : { total_cached_tokens: usage.cached_input_tokens }),
      total_steps: steps.length,
      ...(Object.keys(more).length === 0 ? {} : { extra: more }),
    },
    extra: { rollcall: about },
  };
}

function agentStep({ reasoning, text, calls }: Turn, records: ReadonlyMap<string, ToolCallRecord>): Omit<AtifStep, "step_id"> {
  const began = calls.map(({ id }) => records.get(id)?.started_at).find((instant) => instant != null);
  const results = calls.flatMap(({ id, output }) => (output === null ? [] : [{ source_call_id: id, content: output }]));
  return {
    ...(began == null ? {} : { timestamp: began }),
    source: "agent",
    message: text,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => toolCall(call, records.get(call.id))) }),
    ...(results.length === 0 ? {} : { observation: { results } }),
  };
}

function toolCall({ id, name, arguments: text }: Call, record: ToolCallRecord | undefined): AtifToolCall {
  const parsed = objectIn(text);
  const extra = {
    ...(record === undefined ? {} : { status: record.status, duration_ms: record.duration_ms, server_name: record.server_name ?? null }),
    ...(parsed === null ? { arguments_text: text } : {}),
  };
  return {
    tool_call_id: id,
    function_name: name,
    arguments: parsed ?? {},
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

/** null: the model wrote something else than a JSON object. */
function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
