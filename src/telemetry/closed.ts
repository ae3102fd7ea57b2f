// SPDX-License-Identifier: Apache-2.0

/** A label's value must come from a list that is known beforehand: each new one is a new series, kept for ever by who scrapes. */
export const OTHER = "other";
const NONE = "none";

/** The value when it is one of the list; "none" where there is none, "other" for any other. Pure. */
export function closed(list: ReadonlySet<string>, value: string | null | undefined): string {
  if (value == null || value === "") return NONE;
  return list.has(value) ? value : OTHER;
}
