// SPDX-License-Identifier: Apache-2.0
import type { z } from "zod";
import { refusal, type Refusal } from "./refusal.ts";

/** Unknown fields that are told one by one, and how much of each name. */
const MOST_KEYS = 50;
const MAX_KEY_CHARACTERS = 80;

/** A zod issue in the words of a refusal. `raw` tells a missing field from a wrong one. */
export function fromIssue(issue: z.core.$ZodIssue, raw: unknown): Refusal[] {
  const path = pathText(issue.path);
  if (issue.code === "unrecognized_keys") {
    const accepted = "only fields of rollcall.activation/1";
    const told = issue.keys.slice(0, MOST_KEYS).map((key) => {
      const shown = key.slice(0, MAX_KEY_CHARACTERS);
      return refusal(
        "unknown_field",
        path === "" ? shown : `${path}.${shown}`,
        `there is no field ${JSON.stringify(shown)} here`,
        accepted,
      );
    });
    const more = issue.keys.length - told.length;
    return more === 0 ? told : [...told, refusal("unknown_field", path, `there are ${more} more fields that are not known here`, accepted)];
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    // Report the variant that got furthest: the one with the fewest complaints.
    const closest = issue.errors.toSorted((a, b) => a.length - b.length)[0]!;
    return closest.flatMap((inner) => fromIssue({ ...inner, path: [...issue.path, ...inner.path] }, raw));
  }
  if (issue.code === "invalid_union" && "discriminator" in issue && typeof issue.discriminator === "string") {
    const given = valueAt(raw, issue.path);
    const what = given === undefined ? "it is missing" : "there is no such kind";
    const kinds = "options" in issue && Array.isArray(issue.options) ? issue.options.map((kind) => JSON.stringify(kind)).join(" or ") : "";
    return [
      refusal(given === undefined ? "missing_field" : "invalid_field", path, what, kinds === "" ? "see schemas/activation.json" : kinds),
    ];
  }
  const missing = issue.code === "invalid_type" && valueAt(raw, issue.path) === undefined;
  return [refusal(missing ? "missing_field" : "invalid_field", path, missing ? "it is missing" : issue.message, accepts(issue))];
}

function accepts(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.expected;
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value)).join(" or ");
    case "too_small":
      return `${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}`;
    case "too_big":
      return `${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}`;
    case "invalid_format":
      return issue.pattern === undefined ? issue.format : `text that matches ${issue.pattern}`;
    default:
      return "see schemas/activation.json";
  }
}

function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  let value = raw;
  for (const key of path) {
    if (value === null || typeof value !== "object") return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** ["tool_grants", 0, "connection"] -> "tool_grants[0].connection" */
function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`),
    "",
  );
}
