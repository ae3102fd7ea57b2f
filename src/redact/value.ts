// SPDX-License-Identifier: Apache-2.0
import { REDACTED, type SecretSet } from "./secret-set.ts";
import { redactWith } from "./text.ts";

/**
 * Redacts structured data (what JSON.parse returns, or is about to be written by JSON.stringify): every string and
 * every key, decoded as they are here, so that the JSON made of it stays valid. Values of 1 to 3 characters are
 * replaced only where they are a whole string. Keys that become equal get a number. Returns `value` itself when it
 * holds no secret, otherwise a copy; other types (numbers, dates, buffers) are left alone.
 */
export function redactValue<T>(set: SecretSet, value: T): T {
  return set.isEmpty ? value : (redactUnknown(set, value) as T);
}

function redactUnknown(set: SecretSet, value: unknown): unknown {
  if (typeof value === "string") return redactString(set, value);
  if (Array.isArray(value)) {
    const redacted = value.map((item) => redactUnknown(set, item));
    return redacted.some((item, index) => item !== value[index]) ? redacted : value;
  }
  return isPlainObject(value) ? redactObject(set, value) : value;
}

function redactString(set: SecretSet, text: string): string {
  if (set.shortValues.has(text)) {
    set.replaced(1);
    return REDACTED;
  }
  return redactWith(set, set.structured, text, {});
}

function redactObject(set: SecretSet, object: Record<string, unknown>): Record<string, unknown> {
  let changed = false;
  const entries = new Map<string, unknown>();
  for (const [key, value] of Object.entries(object)) {
    const newKey = redactString(set, key);
    const newValue = redactUnknown(set, value);
    changed ||= newKey !== key || newValue !== value;
    let free = newKey;
    for (let number = 2; entries.has(free) || (free !== key && Object.hasOwn(object, free)); number++) free = `${newKey} ${number}`;
    entries.set(free, newValue);
  }
  return changed ? Object.fromEntries(entries) : object;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
