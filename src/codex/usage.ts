// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import type { Usage } from "../contract/response.ts";
import type { TokenCounts } from "./transcript-records.ts";

const count = z.int().min(0);
const turnUsage = z.looseObject({ input_tokens: count, output_tokens: count });
/** Zero is ambiguous: Codex writes it also when the model server said nothing. */
const reliable = z.int().positive();

/**
 * Adds the usage of one more completed turn. A counter is null unless every turn had it as a positive integer.
 * `before` is undefined for the first turn; null = some turn's usage could not be read, which stays so.
 */
export function addUsage(before: Usage | null | undefined, reported: unknown): Usage | null {
  const parsed = turnUsage.safeParse(reported);
  if (!parsed.success || before === null) return null;
  const { input_tokens, output_tokens } = parsed.data;
  const input = (before?.input_tokens ?? 0) + input_tokens;
  const output = (before?.output_tokens ?? 0) + output_tokens;
  const sum = (name: "cached_input_tokens" | "reasoning_output_tokens"): number | null => {
    const now = reliable.safeParse(parsed.data[name]);
    const earlier = before === undefined ? 0 : before[name];
    return now.success && earlier !== null ? earlier + now.data : null;
  };
  return {
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    cached_input_tokens: sum("cached_input_tokens"),
    reasoning_output_tokens: sum("reasoning_output_tokens"),
    cache_write_input_tokens: null,
  };
}

/** The same from a transcript's totals. */
export function usageOfTotals({ input_tokens, output_tokens, cached_input_tokens, reasoning_output_tokens }: TokenCounts): Usage {
  return {
    input_tokens,
    output_tokens,
    total_tokens: input_tokens + output_tokens,
    cached_input_tokens: reliable.safeParse(cached_input_tokens).data ?? null,
    reasoning_output_tokens: reliable.safeParse(reasoning_output_tokens).data ?? null,
    cache_write_input_tokens: null,
  };
}
