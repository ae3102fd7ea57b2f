// SPDX-License-Identifier: Apache-2.0
import type { Tokens } from "../contract/result.ts";

/** Nothing, of a version of which it is not known whether it tells of cache writes. */
export const NO_TOKENS: Tokens = {
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_input_tokens: null,
  output_tokens: 0,
  reasoning_output_tokens: 0,
};

/** The sum; of what one side does not tell, the other side's. Pure. */
export function addTokens(one: Tokens, other: Tokens): Tokens {
  return combined(one, other, (a, b) => a + b);
}

/** By how much a running total has grown. A counter that fell means that Codex began again at zero. Pure. */
export function tokensSince(before: Tokens | null, total: Tokens): Tokens {
  if (before === null) return total;
  const grown = combined(total, before, (now, then) => now - then);
  return Object.values(grown).some((more) => more !== null && more < 0) ? total : grown;
}

function combined(one: Tokens, other: Tokens, of: (a: number, b: number) => number): Tokens {
  const [write, otherWrite] = [one.cache_write_input_tokens, other.cache_write_input_tokens];
  return {
    input_tokens: of(one.input_tokens, other.input_tokens),
    cached_input_tokens: of(one.cached_input_tokens, other.cached_input_tokens),
    cache_write_input_tokens: write === null && otherWrite === null ? null : of(write ?? 0, otherWrite ?? 0),
    output_tokens: of(one.output_tokens, other.output_tokens),
    reasoning_output_tokens: of(one.reasoning_output_tokens, other.reasoning_output_tokens),
  };
}
