// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import type { Usage } from "../contract/response.ts";
import type { Tokens } from "../contract/result.ts";
import { addTokens, NO_TOKENS } from "./tokens.ts";

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
  const sum = (name: "cached_input_tokens" | "reasoning_output_tokens" | "cache_write_input_tokens"): number | null => {
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
    cache_write_input_tokens: sum("cache_write_input_tokens"),
  };
}

/** The same from what transcripts counted. */
function usageOfTokens(tokens: Tokens): Usage {
  const { input_tokens, output_tokens, cached_input_tokens, reasoning_output_tokens, cache_write_input_tokens } = tokens;
  return {
    input_tokens,
    output_tokens,
    total_tokens: input_tokens + output_tokens,
    cached_input_tokens: reliable.safeParse(cached_input_tokens).data ?? null,
    reasoning_output_tokens: reliable.safeParse(reasoning_output_tokens).data ?? null,
    cache_write_input_tokens: reliable.safeParse(cache_write_input_tokens).data ?? null,
  };
}

/**
 * What a session took: the root's usage and that of every subagent. The root's is that of the events, which tell of nobody else, and
 * only at the end of a turn; before that it is what its transcript counted. null = nothing was told of any thread. Pure.
 */
export function sessionUsage(
  ofRoot: Usage | null,
  [root, ...subagents]: readonly { answeredCalls: number; tokens: Tokens }[],
): Usage | null {
  const counted = subagents.filter(({ answeredCalls }) => answeredCalls > 0).map(({ tokens }) => tokens);
  if (ofRoot !== null && counted.length === 0) return ofRoot;
  if (ofRoot !== null) counted.push(tokensOf(ofRoot));
  else if (root !== undefined && root.answeredCalls > 0) counted.push(root.tokens);
  return counted.length === 0 ? null : usageOfTokens(counted.reduce(addTokens, NO_TOKENS));
}

/** A counter that is null was zero, or was not told. */
function tokensOf({ input_tokens, output_tokens, cached_input_tokens, reasoning_output_tokens, cache_write_input_tokens }: Usage): Tokens {
  return {
    input_tokens,
    cached_input_tokens: cached_input_tokens ?? 0,
    cache_write_input_tokens: cache_write_input_tokens ?? 0,
    output_tokens,
    reasoning_output_tokens: reasoning_output_tokens ?? 0,
  };
}
