// SPDX-License-Identifier: Apache-2.0
import pMap from "p-map";
import type { LocalCopy } from "../references/reference.ts";

/** At once, for one row. */
const AT_ONCE = 4;

/** Puts the files of one row after the other into the store of the workers, each of them once. */
export function inputPutter(put: (copy: LocalCopy) => Promise<void>): (copies: readonly LocalCopy[]) => Promise<void> {
  const there = new Set<string>();
  return async (copies) => {
    const missing = new Map(copies.filter(({ sha256 }) => !there.has(sha256)).map((copy) => [copy.sha256, copy]));
    await pMap(
      missing.values(),
      async (copy) => {
        await put(copy);
        there.add(copy.sha256);
      },
      { concurrency: AT_ONCE },
    );
  };
}
