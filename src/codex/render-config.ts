// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import TOML, { type JsonMap } from "@iarna/toml";
import { RollcallError } from "../errors.ts";

/**
 * config.toml as text. Reads it back and compares, so that what Codex reads is what was meant. Throws RollcallError
 * "config_invalid" with the key path of what TOML cannot carry, never with the value: values are secrets.
 */
export function renderConfig(config: Record<string, unknown>): string {
  const bad = unwritable(config, []);
  if (bad !== null) throw refused(bad);
  const text = TOML.stringify(config as JsonMap);
  // Not the parser's error as a cause: it quotes the line.
  if (!isDeepStrictEqual(readBack(text), plain(config))) throw refused("the whole");
  return text;
}

function refused(path: string): RollcallError {
  return new RollcallError(
    "config_invalid",
    `Codex's configuration cannot carry the value at ${path}: it holds a control character, half of a surrogate pair or a number that TOML has no form for. Change that value.`,
  );
}

/** Key path of the first key or value that does not survive being written and read; null = all do. */
function unwritable(value: unknown, path: readonly string[]): string | null {
  if (value !== null && typeof value === "object") {
    for (const [key, inner] of Object.entries(value)) {
      if (!survives(key)) return `${shown(path)} (a key of it)`;
      const bad = unwritable(inner, [...path, key]);
      if (bad !== null) return bad;
    }
    return null;
  }
  return survives(value) ? null : shown(path);
}

function survives(value: unknown): boolean {
  if (typeof value === "string" && /[\u007f\p{Surrogate}]/u.test(value)) return false; // the writer and reader pass them, Codex does not
  if (typeof value === "number" && !Number.isFinite(value)) return false;
  if (typeof value === "string" && /^[\x20-\x7e]*$/.test(value)) return true;
  const one = { value } as JsonMap;
  return isDeepStrictEqual(readBack(TOML.stringify(one)), one);
}

function readBack(text: string): unknown {
  try {
    return plain(TOML.parse(text));
  } catch {
    return undefined;
  }
}

/** Without the marks that the parser leaves on its objects. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function shown(path: readonly string[]): string {
  return path.length === 0 ? "the top" : path.map((key) => (/^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key))).join(".");
}
