// SPDX-License-Identifier: Apache-2.0
import { Automaton } from "./automaton.ts";
import { patternsOf, secretsWithin, type SecretInput } from "./forms.ts";
import { Matcher } from "./matcher.ts";

/** What stands in the place of a secret. */
export const REDACTED = "[redacted]";

/** The secrets of one activation, prepared for searching. Make it once with `buildSecretSet`; it never changes but for a count. */
export class SecretSet {
  /** What it was built from. */
  readonly inputs: readonly SecretInput[];
  /** Values of 1 to 3 characters: in structured data replaced only when they are a whole string. */
  readonly shortValues: ReadonlySet<string>;
  /** All forms, for text such as stderr. */
  readonly text: Automaton;
  /** All but the short values, for strings of structured data and for files. */
  readonly structured: Automaton;
  // A matcher holds buffers as large as the longest value asks for; reading one string after the other, one is enough.
  #replacements = 0;
  readonly #reusable = new Map<Automaton, Map<boolean, Matcher>>();

  constructor(inputs: readonly SecretInput[]) {
    this.inputs = inputs;
    const values = new Map(inputs.flatMap(secretsWithin).map((input) => [`${input.name ?? ""}\0${input.value}`, input]));
    const found = [...values.values()].map((input) => ({ input, ...patternsOf(input) }));
    const long = found.filter(({ short }) => !short).flatMap(({ patterns }) => patterns);
    const short = found.filter((one) => one.short);
    this.shortValues = new Set(short.map(({ input }) => input.value));
    this.structured = new Automaton(long);
    this.text = short.length === 0 ? this.structured : new Automaton([...long, ...short.flatMap((one) => one.patterns)]);
  }

  /** Places in which one of them was replaced so far, wherever this set was used; for numbers only. */
  get replacements(): number {
    return this.#replacements;
  }

  /** Said by whoever replaced. */
  replaced(places: number): void {
    this.#replacements += places;
  }

  /** True when there is nothing to look for. */
  get isEmpty(): boolean {
    return this.inputs.length === 0;
  }

  /** A matcher at its beginning, to be used up before the next one is asked for. */
  matcher(automaton: Automaton, endsAtCut: boolean): Matcher {
    const kept = this.#reusable.get(automaton) ?? new Map<boolean, Matcher>();
    this.#reusable.set(automaton, kept);
    const matcher = kept.get(endsAtCut) ?? new Matcher(automaton, { endsAtCut });
    kept.set(endsAtCut, matcher);
    matcher.reset();
    return matcher;
  }
}

/**
 * Prepares values for redaction. Order and repetition do not matter; empty values and white space are ignored. Of
 * "Bearer X" and cookies the parts are secrets too. Takes some 3 ms for a token, 100 for a value of 8 KiB.
 */
export function buildSecretSet(inputs: readonly SecretInput[]): SecretSet {
  return new SecretSet(inputs.filter(({ value }) => value.trim() !== ""));
}

export const emptySecretSet: SecretSet = buildSecretSet([]);
