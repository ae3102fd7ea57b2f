// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { stringify } from "safe-stable-stringify";
import type { SealedActivation } from "./seal.ts";
import { secretSlots } from "./secret-slots.ts";

/** More would not help anybody to find the difference. */
const MOST_FIELDS = 20;

/**
 * sha256 (hex) over what an activation asks for: equal for the same content whatever the order of fields, the trace context (each request
 * has one of its own) and the values of its secrets, which are renewed while the work stays the same. `activation`: in clear.
 */
export function contentDigest(activation: object): string {
  return sha256(canonical(withoutSecretValues(activation)));
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/**
 * Paths of the fields in which an activation differs from one that is kept sealed, e.g. "tool_grants[0].name"; at most 20. Where a sealed
 * URL leads cannot be seen: those are named when there is no other difference.
 */
export function differingFields(kept: SealedActivation, activation: object): string[] {
  const fields = differences(withoutSecretValues(kept), withoutSecretValues(activation), "").slice(0, MOST_FIELDS);
  return fields.length > 0 ? fields : secretSlots(kept).flatMap(({ path, isUrl }) => (isUrl ? [path] : []));
}

/** A copy without trace context, and in the place of each secret that there is one, and where a URL leads. For rows as for activations. Pure. */
export function withoutSecretValues(activation: object): Record<string, unknown> {
  const { traceparent: _, ...copy } = structuredClone(activation) as Record<string, unknown>;
  for (const { holder, key, isUrl } of secretSlots(copy)) {
    const value = holder[key];
    holder[key] = isUrl && typeof value === "string" ? { secret: true, leads_to: leadsTo(value) } : { secret: true };
  }
  return copy;
}

function leadsTo(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function differences(a: unknown, b: unknown, path: string): string[] {
  if (canonical(a) === canonical(b) || (isSecret(a) && isSecret(b))) return [];
  if (!isTree(a) || !isTree(b) || Array.isArray(a) !== Array.isArray(b) || isSecret(a) || isSecret(b)) return [path];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].flatMap((key) => {
    const inner = Array.isArray(a) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    return differences(Object.hasOwn(a, key) ? a[key] : undefined, Object.hasOwn(b, key) ? b[key] : undefined, inner);
  });
}

/** The same text for the same value, whatever the order of fields. Pure. */
export function canonical(value: unknown): string {
  return stringify(value) ?? "";
}

function isSecret(value: unknown): boolean {
  return isTree(value) && value["secret"] === true;
}

function isTree(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object";
}

/** What stays of an activation's content beside its end, when the queue has forgotten it: no value, only digests. */
export interface ContentRecord {
  /** {@link contentDigest} */
  digest: string;
  /** sha256 (hex) of each top-level field. */
  fields: Record<string, string>;
}

/** `digest`: of the activation in clear, since a sealed URL does not tell where it leads. Pure. */
export function contentRecord(digest: string, sealed: SealedActivation): ContentRecord {
  const fields = Object.entries(withoutSecretValues(sealed)).map(([name, value]) => [name, sha256(canonical(value))] as const);
  return { digest, fields: Object.fromEntries(fields) };
}

/** Names of the fields in which two recorded contents differ; none when they are the same. Pure. */
export function differingRecords(one: ContentRecord, other: ContentRecord): string[] {
  if (one.digest === other.digest) return [];
  const names = [...new Set([...Object.keys(one.fields), ...Object.keys(other.fields)])];
  const differing = names.filter((name) => one.fields[name] !== other.fields[name]);
  return differing.length > 0 ? differing : ["where a URL leads"];
}
