// SPDX-License-Identifier: Apache-2.0
import type { SecretSet } from "./secret-set.ts";
import { redactText } from "./text.ts";

const MAX_CAUSES = 5;

/**
 * Redacts an error where it is, and the errors that caused it: message, stack, and what libraries hang on them as text. For errors
 * that go to whoever does not know the secrets. Anything that is no Error becomes one.
 */
export function redactError(set: SecretSet, thrown: unknown): Error {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  let one: unknown = error;
  for (let depth = 0; one instanceof Error && depth < MAX_CAUSES; depth++, one = one.cause) {
    for (const name of Object.getOwnPropertyNames(one)) {
      const value: unknown = Reflect.get(one, name);
      if (typeof value === "string") Reflect.set(one, name, redactText(set, value));
    }
    // What is no text is not looked through, and what a cause is, is not known.
    if (depth === MAX_CAUSES - 1 || (one.cause !== undefined && !(one.cause instanceof Error))) delete one.cause;
  }
  return error;
}
