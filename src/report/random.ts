// SPDX-License-Identifier: Apache-2.0
import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

/** Always the same numbers in [0, 1): a report of the same results says the same. */
export function fixedRandom(): () => number {
  const generator = xoroshiro128plus(20_260_401);
  return () => uniformFloat64(generator);
}
