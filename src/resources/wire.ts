// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { z } from "zod";
import type { EpisodeId, TaskId } from "../contract/identity.ts";
import type { ResourcesServer } from "./server.ts";

// What goes to a resources server of NeMo Gym and what comes back: nemo_gym/base_resources_server.py and
// environment_servers/single_agent_turn/app.py. Requests are exactly theirs; of answers only what is needed is looked at.

/** A task as a resources server knows it: any JSON fields. */
export type Row = Record<string, unknown>;

/** How its tools are reached over MCP. Header values are secrets: the session's token is among them. */
const toolsSchema = z.looseObject({
  server_name: z.string().min(1).max(256).nullish(),
  url_path: z.string().max(2_000).default("/mcp"),
  transport: z.string().default("http"),
  headers: z.record(z.string(), z.string()).default({}),
});

export const seedAnswerSchema = z.looseObject({
  resources_session_id: z.string().nullish(),
  sandbox_access: z.looseObject({}).nullish(),
  /** Under this name to an environment server, */
  resources_tools: toolsSchema.nullish(),
  /** and under this one to an agent. */
  mcp: toolsSchema.nullish(),
});
export type SeedAnswer = z.infer<typeof seedAnswerSchema>;

export const verifyAnswerSchema = z.looseObject({ reward: z.number() });
export type VerifyAnswer = z.infer<typeof verifyAnswerSchema>;

/** Derived, so that a seed that is sent again is the same seed, and one whose answer was lost can be closed. */
export function resourcesSessionId(of: { run_id: string; activation_id: string; generation: number; attempt: number }): string {
  const hash = createHash("sha256").update([of.run_id, of.activation_id, of.generation, of.attempt].join("\0"), "utf8").digest("hex");
  return `resources-session-${hash.slice(0, 32)}`;
}

/** Of a row what is about its collection, not about the task. */
const NOT_TASK_DATA = new Set(["responses_create_params", "agent_ref", "task_source", "skills_ref"]);

/** The fields of a row that are the task's. Pure. */
function taskDataOf(row: Row): Row {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !NOT_TASK_DATA.has(name) && !name.startsWith("_ng_")));
}

interface SessionNames {
  session_id: string;
  episode_id: EpisodeId;
}

export function seedBody({ protocol }: Pick<ResourcesServer, "protocol">, names: SessionNames & { task_id: TaskId }, row: Row): Row {
  if (protocol === "row") return row;
  const { session_id, episode_id, task_id } = names;
  return { resources_session_id: session_id, episode_id, task_id, task_data: taskDataOf(row) };
}

/** Flat in both protocols; the session's cookie says which episode it is. `response`: a Responses object. */
export function verifyBody({ protocol }: Pick<ResourcesServer, "protocol">, row: Row, response: object): Row {
  const { responses_create_params } = row;
  return { ...(protocol === "row" ? row : taskDataOf(row)), responses_create_params, response };
}

export function closeBody({ session_id, episode_id }: SessionNames): Row {
  return { resources_session_id: session_id, episode_id };
}
