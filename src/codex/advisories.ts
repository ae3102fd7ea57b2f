// SPDX-License-Identifier: Apache-2.0

export interface Advisory {
  kind: "model_metadata" | "compaction" | "deprecation";
  text: string;
}

const COMPACTION =
  "Heads up: Long threads and multiple compactions can cause the model to be less accurate. Start a new thread when possible to keep threads small and targeted.";

/**
 * Whether an `error` item only advises: then it does not fail a run that ends well. The compaction sentence counts
 * anywhere, the others before the turn only. 0.171.0 calls our `features.multi_agent` deprecated, twice a run.
 */
export function advisoryOf(text: string, turnStarted: boolean): Advisory | null {
  if (text === COMPACTION) return { kind: "compaction", text };
  if (turnStarted) return null;
  if (/^Model metadata for `[^`]*` not found\./.test(text)) return { kind: "model_metadata", text };
  if (text.startsWith("`[features].multi_agent` is deprecated.")) return { kind: "deprecation", text };
  return null;
}
