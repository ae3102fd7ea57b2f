// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import type { ResponseItem } from "../contract/response.ts";
import type { Tokens } from "../contract/result.ts";
import type { TranscriptHabits } from "./profile.ts";
import { subagentCalls } from "./subagent-calls.ts";
import { NO_TOKENS } from "./tokens.ts";
import type { ModelCallFacts } from "./transcript-model-calls.ts";
import type { SessionTranscripts } from "./transcript-threads.ts";
import type { TranscriptFacts } from "./transcript.ts";

/** One agent of a session, and what its transcript alone tells of it. */
export interface JoinedThread {
  thread_id: string;
  /** null: the root. */
  parent_thread_id: string | null;
  agent_path: string | null;
  /** Unique in the session; the root's is the session's. */
  invocation_id: string;
  parent_invocation_id: string | null;
  spawned_by_tool_call_id: string | null;
  status: TranscriptFacts["ending"];
  duration_ms: number | null;
  /** As far as they were kept. */
  modelCalls: ModelCallFacts[];
  answeredCalls: number;
  openCalls: number;
  tokens: Tokens;
  compactions: (number | null)[];
  dropped: number;
  /** [] of the root: the events tell of it. */
  toolCalls: ToolCallRecord[];
  conversation: ResponseItem[];
}

/** The root first, then its subagents, parents before children. Pure. */
export function joinedThreads(
  { root_id, root, subagents }: SessionTranscripts,
  invocationId: string,
  habits: TranscriptHabits,
): JoinedThread[] {
  const rootId = root_id ?? "unknown";
  const invocationOf = (threadId: string): string => (threadId === rootId ? invocationId : `${invocationId}/${threadId}`);
  const ofRoot: JoinedThread = {
    ...countsOf(root, habits),
    thread_id: rootId,
    parent_thread_id: null,
    agent_path: root.meta?.agent_path ?? null,
    invocation_id: invocationId,
    parent_invocation_id: null,
    spawned_by_tool_call_id: null,
    toolCalls: [],
    conversation: [],
  };
  return [
    ofRoot,
    ...subagents.map(({ thread_id, parent_thread_id, agent_path, spawned_by, transcript }) => ({
      ...countsOf(transcript, habits),
      thread_id,
      parent_thread_id,
      agent_path,
      invocation_id: invocationOf(thread_id),
      parent_invocation_id: invocationOf(parent_thread_id),
      spawned_by_tool_call_id: spawned_by,
      ...subagentCalls(transcript, invocationOf(thread_id)),
    })),
  ];
}

type Counts = "status" | "duration_ms" | "modelCalls" | "answeredCalls" | "openCalls" | "tokens" | "compactions" | "dropped";

function countsOf(transcript: TranscriptFacts, { cacheWrites }: TranscriptHabits): Pick<JoinedThread, Counts> {
  const { begun_at, ended_at, modelCalls, answeredCalls, openCalls, usage, compactions, dropped, ending } = transcript;
  const told = (tokens: Tokens): Tokens => ({
    ...tokens,
    cache_write_input_tokens: cacheWrites ? (tokens.cache_write_input_tokens ?? 0) : null,
  });
  return {
    status: ending,
    duration_ms: begun_at === null || ended_at === null ? null : Math.max(0, Math.round((ended_at - begun_at) * 1000)),
    modelCalls: modelCalls.map((call) => ({ ...call, usage: told(call.usage) })),
    answeredCalls,
    openCalls,
    tokens: told(usage ?? NO_TOKENS),
    compactions,
    dropped,
  };
}
