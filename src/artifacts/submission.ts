// SPDX-License-Identifier: Apache-2.0
import type { ResponseItem } from "../contract/response.ts";

/**
 * The paths of the last successful call of a tool in `requiredTools`, e.g. finish {reason, paths}; [] without one. A text in
 * the place of the list is read as the tools themselves read it: a JSON list, or one bare name.
 */
export function handedInPaths(items: readonly ResponseItem[], requiredTools: readonly string[]): string[] {
  return pathsOf(lastHandIn(items, requiredTools));
}

/** The arguments of the last successful call of one of the tools; null without one, or when they are no JSON. Pure. */
export function lastHandIn(items: readonly ResponseItem[], tools: readonly string[]): unknown {
  const call = items.findLast((item) => item.type === "function_call" && item.status === "completed" && tools.includes(item.name));
  return call?.type === "function_call" ? parsed(call.arguments) : null;
}

function pathsOf(call: unknown): string[] {
  const paths = call !== null && typeof call === "object" && "paths" in call ? call.paths : [];
  if (typeof paths === "string") {
    const list = parsed(paths);
    return Array.isArray(list) ? strings(list) : paths === "" ? [] : [paths];
  }
  return Array.isArray(paths) ? strings(paths) : [];
}

function strings(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === "string");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
