// SPDX-License-Identifier: Apache-2.0

/**
 * Whether JSON has more than `most` values (elements and fields, at every depth). Stops as soon as it has: whatever looks at each of them
 * afterwards has a bounded amount to do. Pure; not recursive.
 */
export function hasMoreValues(json: unknown, most: number): boolean {
  const open: unknown[] = [json];
  let count = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (value === null || typeof value !== "object") continue;
    // for-in of an object, unlike Object.values, can be left early.
    for (const key in value) {
      if (++count > most) return true;
      open.push((value as Record<string, unknown>)[key]);
    }
  }
  return false;
}
