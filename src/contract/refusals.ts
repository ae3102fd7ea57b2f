// SPDX-License-Identifier: Apache-2.0
import type { z } from "zod";
import { ACTIVATION_SCHEMA_MINOR, activationSchema, type SessionActivation } from "./activation.ts";
import { hasMoreValues } from "./count-values.ts";
import { grantRefusals } from "./rules/grants.ts";
import { inputRefusals } from "./rules/input.ts";
import { fromIssue } from "./rules/issues.ts";
import { notYet, refusal, type AdmissionPolicy, type Refusal } from "./rules/refusal.ts";
import { codexRefusals, modelRefusals, sandboxRefusals } from "./rules/settings.ts";

export type { AdmissionPolicy, Refusal, RefusalCode } from "./rules/refusal.ts";

/** Looking at each takes microseconds, and nobody else is served meanwhile. */
const MOST_VALUES = 100_000;

export type Admission = { accepted: true; activation: SessionActivation } | { accepted: false; refusals: Refusal[] };

/**
 * Validates an activation and finds every reason against it at once. Pure. Fields that fail do not hide what is wrong
 * with the others: each top-level field is parsed by itself, and the rules look at whatever parsed.
 */
export function admit(raw: unknown, policy: AdmissionPolicy): Admission {
  if (raw === null || typeof raw !== "object" || Array.isArray(raw)) {
    return { accepted: false, refusals: [refusal("invalid_field", "", "an activation must be a JSON object", "a JSON object")] };
  }
  if (hasMoreValues(raw, MOST_VALUES)) {
    const message = `it has more than ${MOST_VALUES} values (fields and elements, at all depths)`;
    return {
      accepted: false,
      refusals: [refusal("invalid_field", "", message, `at most ${MOST_VALUES}; large content goes into one text or a file`)],
    };
  }
  const unsafe = unsafeKeys(raw, "");
  if (unsafe.length > 0) return { accepted: false, refusals: unsafe };
  const aliased = withAlias(raw as Record<string, unknown>);
  if ("refusal" in aliased) return { accepted: false, refusals: [aliased.refusal] };

  const parsed = activationSchema.safeParse(aliased.value);
  const refusals = parsed.success ? [] : parsed.error.issues.flatMap((issue) => fromIssue(issue, aliased.value));
  refusals.push(...ruleRefusals(fieldsThatParse(aliased.value), policy));
  return refusals.length === 0 && parsed.success ? { accepted: true, activation: parsed.data } : { accepted: false, refusals };
}

/** Upstream's newer name for grants is accepted on input; inside there is one name. */
function withAlias(raw: Record<string, unknown>): { value: Record<string, unknown> } | { refusal: Refusal } {
  if (!Object.hasOwn(raw, "tool_accesses")) return { value: raw };
  const { tool_accesses, ...rest } = raw;
  if (Object.hasOwn(rest, "tool_grants")) {
    return {
      refusal: refusal("invalid_field", "tool_accesses", "tool_grants and its alias tool_accesses are both given", "one of the two"),
    };
  }
  return { value: { ...rest, tool_grants: tool_accesses } };
}

/** Whatever top-level fields are valid, with their defaults; the others are absent. */
function fieldsThatParse(raw: Record<string, unknown>): Partial<SessionActivation> {
  const fields: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(activationSchema.shape)) {
    const parsed = (schema as z.ZodType).safeParse(raw[name]);
    if (parsed.success) fields[name] = parsed.data;
  }
  if (!("tool_grants" in fields) && Array.isArray(raw["tool_grants"])) {
    const grants = raw["tool_grants"].map((grant) => activationSchema.shape.tool_grants.unwrap().element.safeParse(grant));
    // Positions must stay true in the paths, so a grant that failed leaves a hole.
    fields["tool_grants"] = grants.map((grant) => (grant.success ? grant.data : undefined));
  }
  return fields;
}

function ruleRefusals(fields: Partial<SessionActivation>, policy: AdmissionPolicy): Refusal[] {
  return [
    ...schemaMinorRefusals(fields),
    ...inputRefusals(fields),
    ...grantRefusals(fields.tool_grants ?? []),
    ...codexRefusals(fields.codex),
    ...sandboxRefusals(fields.sandbox, policy),
    ...modelRefusals(fields.model, policy),
    ...(fields.sandbox_access === undefined ? [] : [notYet("sandbox_access", "attaching to a sandbox that somebody else made")]),
  ];
}

function schemaMinorRefusals(fields: Partial<SessionActivation>): Refusal[] {
  if (fields.schema_minor === undefined || fields.schema_minor <= ACTIVATION_SCHEMA_MINOR) return [];
  return [
    refusal(
      "invalid_field",
      "schema_minor",
      `this version knows fields up to minor ${ACTIVATION_SCHEMA_MINOR}`,
      `0 to ${ACTIVATION_SCHEMA_MINOR}`,
    ),
  ];
}

/** Nobody writes an activation nested deeper; beyond, recursion could overflow the stack. */
const MAX_DEPTH = 64;

/** A key called `__proto__` would silently vanish from, or change, an object it is copied into. */
function unsafeKeys(value: unknown, path: string, depth = 0): Refusal[] {
  if (value === null || typeof value !== "object") return [];
  if (depth > MAX_DEPTH) return [refusal("invalid_field", path, "it is nested too deep", `at most ${MAX_DEPTH} levels`)];
  return Object.entries(value).flatMap(([key, inner]) => {
    const innerPath = Array.isArray(value) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    const own = key === "__proto__" ? [refusal("unsafe_key", innerPath, "the name __proto__ is not usable as a key", "another name")] : [];
    return [...own, ...unsafeKeys(inner, innerPath, depth + 1)];
  });
}
