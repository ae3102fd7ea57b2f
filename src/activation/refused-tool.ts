// SPDX-License-Identifier: Apache-2.0
import { refusalBody } from "../codex/turn-failure.ts";
import type { OfferedTools } from "./offered-tools.ts";

/** The grants whose tools a model server did not take, as far as that can be told. */
export interface RefusedTools {
  server_names: string[];
  /** Their tools, as the server calls them. */
  tools: string[];
}

/** Longest name of a function in the Responses API. */
const MAX_NAME = 64;
const NAME = /^[a-zA-Z0-9_-]+$/;

/**
 * Which granted tools a refusal of `tools[N]` means. The number is none of ours: it counts Codex's own tools too, whose number differs
 * by model. So it is told by the rule that the refusal names, which a granted name breaks, or by the function that it names. Pure.
 */
export function refusedTools(text: string, servers: readonly string[], offered: OfferedTools): RefusedTools {
  const { message = "", param = "" } = refusalBody(text) ?? {};
  const named = /\bfunction '([^']{1,200})'/.exec(message)?.[1];
  const longest = Number(/\bmaximum length (\d{1,4})\b/.exec(message)?.[1] ?? MAX_NAME);
  const length = /\blength (\d{1,5}) instead\b/.exec(message)?.[1];
  const breaks = (name: string): boolean =>
    length === undefined ? name.length > longest || !NAME.test(name) : name.length > longest && name.length === Number(length);
  const isMeant = (tool: string): boolean => (named === undefined ? breaks(tool) : tool === named || named.endsWith(`__${tool}`));
  const found = servers.map((name) => ({ name, tools: (offered.get(name) ?? []).filter(isMeant), own: breaks(`mcp__${name}`) }));
  const meant = found.filter(({ name, tools, own }) => tools.length > 0 || own || named?.startsWith(`mcp__${name}__`) === true);
  if (meant.length > 0) return { server_names: meant.map(({ name }) => name), tools: meant.flatMap(({ tools }) => tools) };
  // A tool within a namespace is a server's; with one server it is clear whose.
  const isNested = /^tools\[\d+\]\.tools\[/.test(param);
  return { server_names: isNested && servers.length === 1 ? [...servers] : [], tools: named === undefined ? [] : [named] };
}

/** For the reason of the failure; "" when nothing is known. */
export function refusedNote({ server_names, tools }: RefusedTools): string {
  const shown = (names: readonly string[]): string =>
    names
      .slice(0, 5)
      .map((name) => JSON.stringify(name.slice(0, 100)))
      .join(", ");
  if (server_names.length === 0 && tools.length === 0) return "";
  const what = tools.length === 0 ? "its name" : shown(tools);
  return `\nThe model server refuses ${server_names.length === 0 ? what : `${what} of the tool server ${shown(server_names)}`}.`;
}
