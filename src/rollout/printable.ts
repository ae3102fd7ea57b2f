// SPDX-License-Identifier: Apache-2.0

/** Text of others as a terminal may show it: what could steer the terminal becomes visible instead. Line breaks and tabs stay. Pure. */
export function printable(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
