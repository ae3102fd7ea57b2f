// SPDX-License-Identifier: Apache-2.0
import type { Settings } from "../config/settings.ts";
import { withDefaults, type Row, type RowDefaults } from "../rollout/task-row.ts";

export type ServerDefaults = RowDefaults & Pick<Settings, "tool_grants">;

/**
 * What a caller of the API leaves out, as this server's configuration has it: above all where its prompt and a model key go. Only the
 * kind of sandbox is left to the workers. What is there stays as it is, valid or not: admission judges it. Pure.
 */
export function withServerDefaults(
  raw: Row,
  { tool_grants, sandbox: { provider: _ofTheWorkers, ...sandbox }, ...defaults }: ServerDefaults,
): Row {
  const grants = Object.hasOwn(raw, "tool_accesses") ? {} : { tool_grants };
  return withDefaults({ reply_to: "results", ...grants, ...raw }, { ...defaults, sandbox });
}
