// SPDX-License-Identifier: Apache-2.0
import { gammaln, mean } from "simple-statistics";
import { fixedRandom } from "./random.ts";

/** Up to so many pairs that differ, every assignment of signs is tried: 2^16. */
const ENUMERATED_PAIRS = 16;
const SIGN_FLIPS = 10_000;

/**
 * Two-sided exact sign test: `up` pairs are higher in the second, `down` lower, ties say nothing. For yes or no outcomes this is
 * McNemar's exact test. 1 when nothing differs. Pure.
 */
export function signTest(up: number, down: number): number {
  const n = up + down;
  let tail = 0;
  for (let hits = 0; hits <= Math.min(up, down); hits++) tail += Math.exp(logChoose(n, hits) - n * Math.LN2);
  return Math.min(1, 2 * tail);
}

function logChoose(n: number, k: number): number {
  return k === 0 || k === n ? 0 : gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1);
}

/**
 * Two-sided sign-flip test of a mean difference (Fisher and Pitman): were both sides alike, each difference could as well have
 * the other sign. Exact up to 16 pairs that differ, else by 10,000 random assignments, always the same ones. Pure.
 */
export function signFlipTest(differences: readonly number[]): number {
  const differing = differences.filter((difference) => difference !== 0);
  if (differing.length === 0) return 1;
  const seen = Math.abs(sum(differing));
  // Sums that are equal on paper differ in their last bits.
  const atLeast = seen - 1e-9 * differing.reduce((total, difference) => total + Math.abs(difference), 0);
  if (differing.length <= ENUMERATED_PAIRS) {
    const assignments = 2 ** differing.length;
    let extreme = 0;
    for (let signs = 0; signs < assignments; signs++) {
      const flipped = differing.reduce((total, difference, at) => total + ((signs >> at) & 1 ? difference : -difference), 0);
      if (Math.abs(flipped) >= atLeast) extreme++;
    }
    return extreme / assignments;
  }
  const random = fixedRandom();
  let extreme = 1; // the assignment that was seen
  for (let drawn = 0; drawn < SIGN_FLIPS; drawn++) {
    let flipped = 0;
    for (const difference of differing) flipped += random() < 0.5 ? difference : -difference;
    if (Math.abs(flipped) >= atLeast) extreme++;
  }
  return extreme / (SIGN_FLIPS + 1);
}

function sum(values: readonly number[]): number {
  return values.length === 0 ? 0 : mean([...values]) * values.length;
}

/** Holm's correction: p-values that may be read against one level although several were asked; null stays null. Pure. */
export function holm(ps: readonly (number | null)[]): (number | null)[] {
  const asked = ps.flatMap((p, at) => (p === null ? [] : [{ p, at }])).sort((a, b) => a.p - b.p);
  const adjusted: (number | null)[] = ps.map(() => null);
  let highest = 0;
  for (const [rank, { p, at }] of asked.entries()) {
    highest = Math.max(highest, Math.min(1, p * (asked.length - rank)));
    adjusted[at] = highest;
  }
  return adjusted;
}
