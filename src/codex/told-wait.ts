// SPDX-License-Identifier: Apache-2.0

/** Longest wait a model server may ask of everybody; a mistaken one must not stop a night's work. */
const MOST_MS = 3_600_000;
const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const PART = String.raw`(\d{1,9}(?:\.\d{1,9})?)\s*(ms|m(?!il)|s|h)[a-z]*`;
const TOLD = new RegExp(String.raw`\btry again in ((?:${PART}\s*)+)`, "gi");

/**
 * The wait that a model server's own words ask for, in ms, at most an hour; null = none. Codex shows these words of a
 * response.failed and of most statuses, but neither a Retry-After header nor the body of a 429 (0.144.4 and 0.171.0). Pure.
 */
export function toldWaitMs(text: string): number | null {
  const told = [...text.matchAll(TOLD)].at(-1)?.[1];
  if (told === undefined) return null;
  let ms = 0;
  for (const [, amount, unit] of told.matchAll(new RegExp(PART, "gi"))) ms += Number(amount) * UNIT_MS[unit!.toLowerCase()]!;
  return Math.min(MOST_MS, Math.ceil(ms));
}
