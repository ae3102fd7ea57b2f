// SPDX-License-Identifier: Apache-2.0
import { buildSecretSet, emptySecretSet, type SecretSet } from "./secret-set.ts";
import { redactText } from "./text.ts";
import { redactValue } from "./value.ts";

/** The secrets of everything that runs in this process, for what is not of one activation: logs, errors. */
export class LiveSecrets {
  readonly #sets = new Set<{ set: SecretSet }>();
  #merged: SecretSet | undefined = emptySecretSet;

  /** Adds the secrets of an activation; call what it returns when the activation has ended and been logged. */
  add(set: SecretSet): () => void {
    const entry = { set };
    this.#sets.add(entry);
    this.#merged = undefined;
    return () => {
      if (this.#sets.delete(entry)) this.#merged = undefined;
    };
  }

  /** All of them as one set, so that text is read once. */
  get current(): SecretSet {
    this.#merged ??= buildSecretSet([...this.#sets].flatMap(({ set }) => set.inputs));
    return this.#merged;
  }

  text(text: string): string {
    return redactText(this.current, text);
  }

  value<T>(value: T): T {
    return redactValue(this.current, value);
  }
}
