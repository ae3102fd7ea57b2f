// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile } from "../codex/profile.ts";
import type { Finding } from "./finding.ts";

/** Longest name of a function in the Responses API. */
const MAX_NAME = 64;
const MAX_SHOWN = 20;

/** Whether what a server offers can be worked with; null = yes. Pure. */
export function toolsFinding(tools: readonly string[], expected: readonly string[], profile: CodexProfile): Finding | null {
  const missing = expected.filter((name) => !tools.includes(name));
  if (tools.length === 0) return finding("empty_list", "it offers no tools");
  if (missing.length > 0) return finding("tool_missing", `it does not offer ${shown(missing)}; it offers ${shown(tools)}`);
  // A version that shortens them says so as altered names.
  const tooLong = profile.longestToolName !== null ? [] : tools.filter((name) => name.length > MAX_NAME);
  if (tooLong.length > 0)
    return finding("tool_name_refused", `the model server takes at most ${MAX_NAME} characters for ${shown(tooLong)}`);
  return null;
}

/**
 * Tools that the model will see under another name, or once instead of twice: Codex replaces what the Responses API
 * refuses by `_`, adds a hash where two names become equal, and drops a second tool of the same name (measured with
 * 0.144.4 and 0.171.0). Pure.
 */
export function alteredTools(tools: readonly string[], { longestToolName }: CodexProfile): string[] {
  const longest = longestToolName ?? Number.POSITIVE_INFINITY;
  const folded = (name: string): string => name.replaceAll("-", "_");
  const uses = new Map<string, number>();
  for (const name of tools) uses.set(folded(name), (uses.get(folded(name)) ?? 0) + 1);
  const altered = tools.filter((name) => !/^[a-zA-Z0-9_-]+$/.test(name) || (uses.get(folded(name)) ?? 0) > 1 || name.length > longest);
  return [...new Set(altered)];
}

function finding(kind: Finding["case"], what: string): Finding {
  return { phase: "tools/list", case: kind, what, said: null };
}

function shown(names: readonly string[]): string {
  const some = names.slice(0, MAX_SHOWN).map((name) => JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}...` : name));
  return some.join(", ") + (names.length > MAX_SHOWN ? ` and ${names.length - MAX_SHOWN} more` : "");
}
