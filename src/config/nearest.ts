// SPDX-License-Identifier: Apache-2.0

const MOST_MEANT = 10;

/** The known word closest to a misspelt one; null when none is near enough (a third of its letters) to be meant. */
export function nearest(word: string, known: readonly string[]): string | null {
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase().slice(0, 80), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.max(1, Math.ceil(best.candidate.length / 3)) ? best.candidate : null;
}

/** What may be meant by an id that is not known: those that hold it, and up to three that are near; else nothing. Pure. */
export function meantBy(id: string, known: Iterable<string>): string[] {
  const ids = new Set(known);
  const meant = new Set([...ids].filter((one) => one.includes(id)));
  while (meant.size < 3) {
    const next = nearest(
      id,
      [...ids].filter((one) => !meant.has(one)),
    );
    if (next === null) break;
    meant.add(next);
  }
  return [...meant].slice(0, MOST_MEANT);
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = above[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, above[column]! + 1, current[column - 1]! + 1));
    }
    above = current;
  }
  return above[b.length]!;
}
