// SPDX-License-Identifier: Apache-2.0
import type { Used } from "../activation/ports.ts";
import { promoteParked } from "./gate.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { LUA_NOW, runScript, script } from "./script.ts";

// A run's budget is a part of its gate: past it nothing enters, and what runs goes on. What attempts use is counted as they end
// (attempts.ts), before they leave the gate: with one session at once nothing starts past the budget.

export interface RunBudget {
  max_model_calls: number | null;
  max_tokens: number | null;
  /** From now on, so long, something may start; null = for ever. In ms. */
  starts_for_ms: number | null;
}

export const BUDGET_LIMITS = ["max_model_calls", "max_tokens", "not_after"] as const;
export type BudgetLimit = (typeof BUDGET_LIMITS)[number];

export interface BudgetState {
  max_model_calls: number | null;
  max_tokens: number | null;
  /** ISO 8601, by the clock of Redis: nothing starts afterwards. */
  not_after: string | null;
  used: Used;
  /** What keeps the run from starting more; null = nothing of this. */
  spent: BudgetLimit | null;
}

const SET = script(`${LUA_NOW}
local gate = KEYS[1]
local function set(field, value)
  if value == '' then redis.call('HDEL', gate, field) else redis.call('HSET', gate, field, value) end
end
local function atLeast(field, value)
  if tonumber(redis.call('HGET', gate, field) or 0) < tonumber(value) then redis.call('HSET', gate, field, value) end
end
set('max_model_calls', ARGV[1])
set('max_tokens', ARGV[2])
set('not_after', ARGV[3] == '' and '' or string.format('%.0f', now + ARGV[3]))
atLeast('used_model_calls', ARGV[4])
atLeast('used_tokens', ARGV[5])
`);

const READ = script(`${LUA_NOW}
local facts = redis.call('HMGET', KEYS[1], 'max_model_calls', 'used_model_calls', 'max_tokens', 'used_tokens', 'not_after')
table.insert(facts, string.format('%.0f', now))
return facts
`);

/**
 * The run's budget from now on; parked activations start when there is room in it again. `usedAtLeast`: what its producer knows
 * to be used, for a Redis that was emptied since.
 */
export async function setBudget(queues: Queues, runId: string, budget: RunBudget, usedAtLeast: Used): Promise<void> {
  const limits = [budget.max_model_calls, budget.max_tokens, budget.starts_for_ms].map((limit) => limit ?? "");
  await runScript(queues.redis, SET, [keys.gate(runId)], [...limits, usedAtLeast.model_calls, usedAtLeast.tokens]);
  await promoteParked(queues, runId);
}

export async function readBudget({ redis }: Pick<Queues, "redis">, runId: string): Promise<BudgetState> {
  const [maxCalls, calls, maxTokens, tokens, notAfter, now] = (await runScript(redis, READ, [keys.gate(runId)], [])) as (string | null)[];
  const number = (text: string | null | undefined): number | null => (text == null ? null : Number(text));
  const state = {
    max_model_calls: number(maxCalls),
    max_tokens: number(maxTokens),
    not_after: notAfter == null ? null : new Date(Number(notAfter)).toISOString(),
    used: { model_calls: number(calls) ?? 0, tokens: number(tokens) ?? 0 },
  };
  return { ...state, spent: spentOf(state, Number(now)) };
}

/** As gate.ts decides it. Pure. */
function spentOf({ max_model_calls, max_tokens, not_after, used }: Omit<BudgetState, "spent">, now: number): BudgetLimit | null {
  if (max_model_calls !== null && used.model_calls >= max_model_calls) return "max_model_calls";
  if (max_tokens !== null && used.tokens >= max_tokens) return "max_tokens";
  return not_after !== null && now > Date.parse(not_after) ? "not_after" : null;
}
