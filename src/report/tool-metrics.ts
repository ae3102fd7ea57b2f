// SPDX-License-Identifier: Apache-2.0
import { quantile } from "../contract/figures.ts";
import type { RolloutRow } from "./rollout-row.ts";

/** The model chooses tools' names, as many as it likes: what is beyond these goes under one name. */
const MAX_TOOLS = 200;
const OTHERS = "(others)";

export interface ToolMetrics {
  tool: string;
  /** null = Codex's own, or it is not known. */
  server: string | null;
  rollouts: number;
  /** In all attempts. */
  calls: number;
  by_status: Record<string, number>;
  /** failed and timeout. */
  errors: number;
  /** Over the calls whose duration is known (`timed`). */
  timed: number;
  total_ms: number;
  p50_ms: number | null;
  p95_ms: number | null;
}

/** Calls, errors and time of each tool, most called first. Pure. */
export function measureTools(rows: readonly Pick<RolloutRow, "tools">[]): ToolMetrics[] {
  const found = new Map<string, { metrics: ToolMetrics; durations: number[] }>();
  for (const { tools } of rows) {
    for (const { tool, server, calls, by_status, durations_ms } of tools) {
      const key = JSON.stringify([server, tool]);
      const isNew = !found.has(key);
      const name = isNew && found.size >= MAX_TOOLS ? { key: OTHERS, tool: OTHERS, server: null } : { key, tool, server };
      const one = found.get(name.key) ?? { metrics: noCalls(name.tool, name.server), durations: [] };
      found.set(name.key, one);
      one.metrics.rollouts++;
      one.metrics.calls += calls;
      for (const [status, count] of Object.entries(by_status)) one.metrics.by_status[status] = (one.metrics.by_status[status] ?? 0) + count;
      for (const duration of durations_ms) one.durations.push(duration);
    }
  }
  return [...found.values()].map(withTimes).sort((a, b) => b.calls - a.calls || a.tool.localeCompare(b.tool));
}

function noCalls(tool: string, server: string | null): ToolMetrics {
  return { tool, server, rollouts: 0, calls: 0, by_status: {}, errors: 0, timed: 0, total_ms: 0, p50_ms: null, p95_ms: null };
}

function withTimes({ metrics, durations }: { metrics: ToolMetrics; durations: number[] }): ToolMetrics {
  durations.sort((a, b) => a - b);
  const timed = durations.length;
  return {
    ...metrics,
    errors: (metrics.by_status["failed"] ?? 0) + (metrics.by_status["timeout"] ?? 0),
    timed,
    total_ms: Math.round(durations.reduce((total, duration) => total + duration, 0)),
    p50_ms: quantile(durations, 0.5),
    p95_ms: quantile(durations, 0.95),
  };
}
