// SPDX-License-Identifier: Apache-2.0
import type { SessionActivation } from "../contract/activation.ts";
import { secretSlots } from "./secret-slots.ts";

/** Shorter values are in every text, so redaction leaves them alone almost everywhere. */
const MIN_CHARACTERS = 4;

/** Secrets of an activation that are too short to be redacted, in words and without their values. Pure. */
export function shortSecretWarnings(activation: SessionActivation): string[] {
  return secretSlots(activation).flatMap(({ path, holder, key }) => {
    const value = holder[key];
    const length = typeof value === "string" ? Array.from(value.trim()).length : 0;
    if (length === 0 || length >= MIN_CHARACTERS) return [];
    return [
      `${path} has ${length} characters: a value of less than ${MIN_CHARACTERS} is not redacted; if it is a secret, use a longer one`,
    ];
  });
}
