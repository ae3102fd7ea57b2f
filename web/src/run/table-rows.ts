// SPDX-License-Identifier: Apache-2.0
import type { RunRowReply } from "../../../src/api/row-lines.ts";
import type { Usage } from "../../../src/contract/response.ts";
import type { Mark } from "../charts/palette.ts";

/** A row as tables and charts want it. Times in ms since 1970, lengths in ms; null = not known, or not yet. */
export interface TableRow {
  id: string;
  generation: number;
  mark: Mark;
  /** What stands in the table: a status, or a state. */
  state: string;
  task: string | null;
  cause: string | null;
  kind: string | null;
  worker: string | null;
  attempts: number | null;
  started: number | null;
  ended: number | null;
  /** With Codex; of one that runs: so far. */
  took: number | null;
  tokens: number | null;
  /** By kind, of all its attempts; null while it runs, too. */
  usage: Usage | null;
  tool_calls: number | null;
  servers: { granted: number; skipped: number; unavailable: number; unknown: number } | null;
  /** By a resources server, when it ended. */
  reward: number | null;
  /** A resources server was to score it. */
  scored: boolean;
  /** What its session does, while it runs. */
  note: string | null;
  /** False: it has ended, and cannot be run again from what the server has. */
  retryable: boolean;
}

/** `now` in ms since 1970. Pure. */
export function tableRow(row: RunRowReply, now: number): TableRow {
  const started = row.started_at === null ? null : Date.parse(row.started_at);
  const { activation_id: id, generation, task, worker } = row;
  if (row.state !== "ended") {
    const waits = row.state === "waiting" || row.state === "parked" || row.state === "delayed";
    return {
      id,
      generation,
      task,
      worker,
      started,
      mark: waits ? "waiting" : "running",
      state: row.rollout === undefined || row.rollout === "waiting" ? row.state : row.rollout,
      cause: null,
      kind: null,
      attempts: row.attempt === null ? null : row.attempt + 1,
      ended: null,
      took: waits || started === null ? null : Math.max(0, now - started),
      tokens: row.last?.counts?.tokens ?? null,
      usage: null,
      tool_calls: row.last?.counts?.tool_calls ?? null,
      servers: null,
      reward: null,
      scored: row.rollout !== undefined,
      note: row.last?.note ?? null,
      retryable: true,
    };
  }
  const ended = Date.parse(row.ended_at);
  return {
    id,
    generation,
    task,
    worker,
    started,
    ended,
    mark: row.status,
    state: row.status,
    cause: row.cause_code,
    kind: row.failure_kind,
    attempts: row.attempts,
    took: row.run_ms ?? (started === null ? null : Math.max(0, ended - started)),
    tokens: row.tokens,
    usage: row.usage,
    tool_calls: row.tool_calls,
    servers: row.servers,
    reward: row.reward ?? null,
    scored: row.reward !== undefined,
    note: null,
    retryable: row.retryable ?? true,
  };
}

/** One row for each activation: the latest generation, and of one generation its end. `open`: those that run or wait. Pure. */
export function mergedRows(ended: ReadonlyMap<string, TableRow>, open: readonly TableRow[]): TableRow[] {
  const rows = new Map(ended);
  for (const row of open) {
    const known = rows.get(row.id);
    const isNewer = known === undefined || known.generation < row.generation || (known.ended === null && row.mark === "running");
    if (isNewer) rows.set(row.id, row);
  }
  return [...rows.values()];
}
