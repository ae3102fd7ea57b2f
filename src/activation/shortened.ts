// SPDX-License-Identifier: Apache-2.0

/** The text, or its first `most` characters and an ellipsis; never half of a surrogate pair. Pure. */
export function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${beginning(text, most)}…`;
}

/** At most the first `most` characters. Pure. */
export function beginning(text: string, most: number): string {
  return text.slice(0, most).replace(/[\uD800-\uDBFF]$/, "");
}
