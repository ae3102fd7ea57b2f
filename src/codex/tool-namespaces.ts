// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { CodexProfile } from "./profile.ts";

const PREFIX = "mcp__";
/** "_" and 12 hex digits. */
const HASH_CHARACTERS = 13;

/**
 * Under which namespaces a model may be offered the tools of servers of these names (measured with 0.144.4 and 0.171.0). A server
 * has two where its name is so long that those of its tools with longer names go into a shorter one, and where another's
 * name is the same to Codex: a hash tells them apart when both are there. Pure.
 */
export function toolNamespaces(names: readonly string[], { longestCallName }: Pick<CodexProfile, "longestCallName">): string[] {
  const cut = longestCallName - 2 - HASH_CHARACTERS;
  const namespaces = names.flatMap((name) => {
    const plain = plainNamespace(name);
    const hasTwin = names.some((other) => other !== name && plainNamespace(other) === plain);
    return hasTwin ? [plain, withHash(plain, name)] : [plain];
  });
  return [...new Set(namespaces.flatMap((whole) => (whole.length > cut ? [whole, whole.slice(0, cut)] : [whole])))];
}

/** The namespace of a server that has it for itself. */
export function plainNamespace(name: string): string {
  const folded = name.replaceAll("-", "_");
  return folded.startsWith(PREFIX) ? folded : PREFIX + folded;
}

/** The hash goes before a "__" at the end. */
function withHash(namespace: string, name: string): string {
  const hash = createHash("sha1")
    .update(`${name}\0${name}\0`)
    .digest("hex")
    .slice(0, HASH_CHARACTERS - 1);
  return namespace.endsWith("__") ? `${namespace.slice(0, -2)}_${hash}__` : `${namespace}_${hash}`;
}
