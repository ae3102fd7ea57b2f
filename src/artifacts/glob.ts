// SPDX-License-Identifier: Apache-2.0

/**
 * Globs over the names a model chose. Own code, because picomatch (under tinyglobby) turns a glob into a backtracking
 * expression: `*a*a*a*a*b` against one name of 250 "a" took 80 s, and would hold up every activation of a worker. Here
 * a name costs at most pattern length x name length.
 *
 * Syntax: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\` before a literal character, and `**` for any number of directories. A
 * leading dot must be written out. A pattern that matches a directory takes all that is in it.
 */
export interface Glob {
  /** Where matching stands at the top directory. */
  readonly start: GlobState;
  /** One path component further; null when nothing below or at this name can match. */
  step(state: GlobState, name: string): GlobState | null;
  /** Whether a file reached with this state matches. */
  matches(state: GlobState): boolean;
}

/** Positions in the pattern's segments that a path may have reached, ascending. */
export type GlobState = readonly number[];

type Token =
  | { kind: "literal"; text: string }
  | { kind: "any" }
  | { kind: "star" }
  | { kind: "set"; negated: boolean; ranges: [string, string][] };
type Segment = "**" | Token[];

/** Braces multiply: more alternatives than this are no glob that a person wrote. */
const MAX_ALTERNATIVES = 64;

/** Compiles one pattern into one glob for each alternative of its braces; null when it is not a path below a directory. */
export function compileGlobs(pattern: string): Glob[] | null {
  const alternatives = expandBraces(pattern);
  if (alternatives === null) return null;
  const globs = alternatives.map(compile);
  return globs.includes(null) ? null : (globs as Glob[]);
}

function compile(pattern: string): Glob | null {
  const texts = pattern.split("/").filter((text) => text !== "" && text !== ".");
  if (texts.length === 0 || pattern.startsWith("/") || texts.some((text) => text.replaceAll("\\", "") === "..")) return null;
  const segments: Segment[] = texts.map((text) => (text === "**" ? "**" : tokens(text)));
  if (segments.at(-1) !== "**") segments.push("**"); // a directory stands for its content

  /** `**` may also stand for no directory at all. */
  function settle(positions: Iterable<number>): GlobState {
    const settled = new Set<number>();
    for (let position of positions) {
      settled.add(position);
      while (segments[position] === "**") settled.add(++position);
    }
    return [...settled].sort((a, b) => a - b);
  }
  return {
    start: settle([0]),
    step(state, name) {
      const next = new Set<number>();
      for (const position of state) {
        const segment = segments[position];
        if (segment === "**") {
          if (!name.startsWith(".")) next.add(position);
        } else if (segment !== undefined && matchesName(segment, name)) next.add(position + 1);
      }
      return next.size === 0 ? null : settle(next);
    },
    matches: (state) => state.includes(segments.length),
  };
}

/** `{a,b}c` -> [`ac`, `bc`], nested too; null when there are too many. Braces without a comma stay as they are. */
function expandBraces(pattern: string): string[] | null {
  const open = findBrace(pattern);
  if (open === null) return [pattern];
  const head = pattern.slice(0, open.start);
  const tail = pattern.slice(open.end + 1);
  const expanded: string[] = [];
  for (const choice of open.choices) {
    const inner = expandBraces(head + choice + tail);
    if (inner === null || expanded.length + inner.length > MAX_ALTERNATIVES) return null;
    expanded.push(...inner);
  }
  return expanded;
}

/** The first pair of braces that holds a comma, and what the commas part. */
function findBrace(pattern: string): { start: number; end: number; choices: string[] } | null {
  for (let start = 0; start < pattern.length; start++) {
    if (pattern[start] === "\\") start++;
    else if (pattern[start] === "{") {
      const choices: string[] = [];
      let depth = 0;
      let from = start + 1;
      for (let at = start; at < pattern.length; at++) {
        const character = pattern[at];
        if (character === "\\") at++;
        else if (character === "{") depth++;
        else if (character === "," && depth === 1) {
          choices.push(pattern.slice(from, at));
          from = at + 1;
        } else if (character === "}" && --depth === 0) {
          if (choices.length === 0) break;
          return { start, end: at, choices: [...choices, pattern.slice(from, at)] };
        }
      }
    }
  }
  return null;
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  for (let rest = text; rest !== "";) {
    const set = /^\[([!^]?)(\]?[^\]]*)\]/su.exec(rest);
    if (rest.startsWith("*")) {
      if (found.at(-1)?.kind !== "star") found.push({ kind: "star" });
      rest = rest.slice(1);
    } else if (rest.startsWith("?")) {
      found.push({ kind: "any" });
      rest = rest.slice(1);
    } else if (set !== null) {
      const ranges = [...set[2]!.matchAll(/(.)-(.)|(.)/gsu)].map(([, from, to, single]): [string, string] => [
        from ?? single!,
        to ?? single!,
      ]);
      found.push({ kind: "set", negated: set[1] !== "", ranges });
      rest = rest.slice(set[0].length);
    } else {
      const [, character] = /^\\?(.)/su.exec(rest) ?? [];
      found.push({ kind: "literal", text: character ?? "\\" });
      rest = rest.slice(rest.startsWith("\\") ? 1 + (character ?? "").length : character!.length);
    }
  }
  return found;
}

/** The usual two pointers: on a mismatch only the latest `*` takes one character more. */
function matchesName(pattern: readonly Token[], name: string): boolean {
  const first = pattern[0];
  if (name.startsWith(".") && !(first?.kind === "literal" && first.text === ".")) return false;
  const characters = Array.from(name);
  let at = 0;
  let star = -1;
  let resume = 0;
  let index = 0;
  while (index < characters.length) {
    const token = pattern[at];
    if (token?.kind === "star") {
      star = at++;
      resume = index;
    } else if (token !== undefined && matchesCharacter(token, characters[index]!)) {
      at++;
      index++;
    } else if (star >= 0) {
      at = star + 1;
      index = ++resume;
    } else return false;
  }
  while (pattern[at]?.kind === "star") at++;
  return at === pattern.length;
}

function matchesCharacter(token: Exclude<Token, { kind: "star" }>, character: string): boolean {
  if (token.kind === "set") return token.negated !== token.ranges.some(([from, to]) => from <= character && character <= to);
  return token.kind === "any" || token.text === character;
}
