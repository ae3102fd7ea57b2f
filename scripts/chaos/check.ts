// SPDX-License-Identifier: Apache-2.0

/** One promise, and everything that breaks it. */
export interface Check {
  name: string;
  /** How many there should be, and are; where that says something. */
  expected: number | null;
  found: number | null;
  breaches: string[];
}

export function check(name: string, expected: number | null, found: number | null, breaches: string[]): Check {
  return { name, expected, found, breaches };
}

/** What is lost, there more than once, or not wanted at all. */
export function onceEach(wanted: readonly string[], found: readonly string[]): string[] {
  const counts = new Map<string, number>(wanted.map((id) => [id, 0]));
  for (const id of found) counts.set(id, (counts.get(id) ?? 0) + 1);
  const known = new Set(wanted);
  return [...counts].flatMap(([id, count]) =>
    !known.has(id) ? [`${id} is not wanted`] : count === 0 ? [`${id} is lost`] : count > 1 ? [`${id} is there ${count} times`] : [],
  );
}
