// SPDX-License-Identifier: Apache-2.0

/** Controls, what turns the direction of writing, other line ends, and what is not seen at all; not the joiners of emoji and scripts. */
const STEERING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

/**
 * Text of others as a terminal, a page, a log or a report may show it: what could steer one becomes visible instead, as JSON would escape
 * it, so that JSON stays the same JSON. Line breaks and tabs stay. Pure.
 */
export function printable(text: string): string {
  return text.replace(STEERING, (units) =>
    units
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
