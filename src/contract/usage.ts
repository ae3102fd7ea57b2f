// SPDX-License-Identifier: Apache-2.0
import type { z } from "zod";
import type { Usage, usageSchema } from "./response.ts";

// The only place that adds usages: a result's attempts, a run's results, the rows of its page. So they agree.

/** As documents have it; earlier ones lack some counters. */
export type WrittenUsage = z.input<typeof usageSchema>;

/** Counters that may not be told: the first two are a part of the input, the last of the output. */
export const UNTOLD_COUNTERS = ["cached_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens"] as const;

/** Usages added up, and what of it is not known. */
export interface UsageSum {
  /** Over the known parts, each counter over those that tell it. Null: no part is known; null of a counter: none tells it. */
  usage: Usage | null;
  /** Parts that have a usage. */
  known: number;
  /** Parts of which nothing is known: what they took is in no sum. */
  unknown: number;
  /** Known parts that do not tell the counter: 0 of it, or not told by this Codex or its model server, which look alike. */
  untold: Record<(typeof UNTOLD_COUNTERS)[number], number>;
}

/** Adds usages up; null or undefined = nothing is known of that part. Pure. */
export function sumUsage(parts: Iterable<WrittenUsage | null | undefined>): UsageSum {
  const sum: UsageSum = {
    usage: null,
    known: 0,
    unknown: 0,
    untold: { cached_input_tokens: 0, cache_write_input_tokens: 0, reasoning_output_tokens: 0 },
  };
  for (const part of parts) {
    if (part == null) {
      sum.unknown++;
      continue;
    }
    sum.known++;
    sum.usage ??= { ...NOTHING };
    for (const counter of ["input_tokens", "output_tokens", "total_tokens"] as const) sum.usage[counter] += part[counter];
    for (const counter of UNTOLD_COUNTERS) {
      const told = part[counter];
      if (told == null) sum.untold[counter]++;
      else sum.usage[counter] = (sum.usage[counter] ?? 0) + told;
    }
  }
  return sum;
}

const NOTHING: Usage = {
  input_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
  cached_input_tokens: null,
  reasoning_output_tokens: null,
  cache_write_input_tokens: null,
};

/** What the attempts of an activation took together, as far as it is known; null = of none. Pure. */
export function usageOfAttempts(attempts: readonly { usage?: WrittenUsage | null | undefined }[]): Usage | null {
  return sumUsage(attempts.map(({ usage }) => usage)).usage;
}

/**
 * For people: "1,500 in (400 cached, 20 written to the cache), 300 out (100 reasoning)". Counters that are null are left out. Pure.
 */
export function usageText(usage: WrittenUsage, amount: (tokens: number) => string): string {
  const part = (tokens: number | null | undefined, word: string): string[] => (tokens == null ? [] : [`${amount(tokens)} ${word}`]);
  const within = (parts: string[]): string => (parts.length === 0 ? "" : ` (${parts.join(", ")})`);
  const input = within([...part(usage.cached_input_tokens, "cached"), ...part(usage.cache_write_input_tokens, "written to the cache")]);
  const output = within(part(usage.reasoning_output_tokens, "reasoning"));
  return `${amount(usage.input_tokens)} in${input}, ${amount(usage.output_tokens)} out${output}`;
}
