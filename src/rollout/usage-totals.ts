// SPDX-License-Identifier: Apache-2.0
import type { Usage } from "../contract/response.ts";
import { sumUsage, usageText, type UsageSum } from "../contract/usage.ts";
import type { ResultFacts } from "./facts.ts";

/** What a run took of the model: of all attempts of its activations that ended, however they ended. */
export interface UsageTotals extends Usage {
  /** Sessions whose usage is known; the sums are over these. */
  sessions: number;
  /** Sessions that may have called the model and of which nothing is known. */
  unknown_sessions: number;
  /** Model calls that may have been answered and billed, and of which no record tells. */
  open_model_calls: number;
  /** Results with a usage that do not tell the counter. Its sum is over the others; null when none tells it. */
  untold: UsageSum["untold"];
}

/** Of the results of a run, one of each activation. Pure. */
export function usageTotals(results: Iterable<Pick<ResultFacts, "usage" | "sessions">>): UsageTotals {
  const all = [...results];
  const { usage, untold } = sumUsage(all.map((facts) => facts.usage));
  const count = (of: keyof ResultFacts["sessions"]): number => all.reduce((sum, { sessions }) => sum + sessions[of], 0);
  return {
    sessions: count("known"),
    unknown_sessions: count("unknown"),
    open_model_calls: count("open_model_calls"),
    input_tokens: usage?.input_tokens ?? 0,
    output_tokens: usage?.output_tokens ?? 0,
    total_tokens: usage?.total_tokens ?? 0,
    cached_input_tokens: usage?.cached_input_tokens ?? null,
    cache_write_input_tokens: usage?.cache_write_input_tokens ?? null,
    reasoning_output_tokens: usage?.reasoning_output_tokens ?? null,
    untold,
  };
}

/** For people, with what is not known of it. Pure. */
export function totalsText(totals: UsageTotals, amount: (tokens: number) => string): string {
  const { sessions, unknown_sessions: unknown } = totals;
  const told =
    sessions === 0 ? "not reported" : `${usageText(totals, amount)}, in ${amount(sessions)} ${sessions === 1 ? "session" : "sessions"}`;
  return [told, ...unknownWords({ unknown_sessions: unknown, open_model_calls: totals.open_model_calls }, amount)].join("; ");
}

/** "nothing is known of 1 more session", "1 model call may have been billed without a record". Pure. */
export function unknownWords(
  { unknown_sessions: sessions, open_model_calls: calls }: Pick<UsageTotals, "unknown_sessions" | "open_model_calls">,
  amount: (count: number) => string,
): string[] {
  return [
    ...(sessions === 0 ? [] : [`nothing is known of ${amount(sessions)} more ${sessions === 1 ? "session" : "sessions"}`]),
    ...(calls === 0 ? [] : [`${amount(calls)} model ${calls === 1 ? "call" : "calls"} may have been billed without a record`]),
  ];
}
