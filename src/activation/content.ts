// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { stringify } from "safe-stable-stringify";
import { isSealed, sealedWith, type SealedActivation } from "./seal.ts";

/** More would not help anybody to find the difference. */
const MOST_FIELDS = 20;

/**
 * sha256 (hex) over the canonical activation, secrets by their digests: equal for the same content sealed with the same
 * key, whatever the nonces and the order of fields. The trace context is left out: each request has one of its own.
 */
export function contentDigest(sealed: SealedActivation): string {
  return sha256(canonical(comparable(sealed)));
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Paths of the fields in which two sealed activations differ, e.g. "tool_grants[0].connection.url"; at most 20. */
export function differingFields(a: SealedActivation, b: SealedActivation): string[] {
  return differences(comparable(a), comparable(b), "").slice(0, MOST_FIELDS);
}

function differences(a: unknown, b: unknown, path: string): string[] {
  if (canonical(a) === canonical(b)) return [];
  if (!isTree(a) || !isTree(b) || Array.isArray(a) !== Array.isArray(b) || isSealed(a) || isSealed(b)) return [path];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].flatMap((key) => {
    const inner = Array.isArray(a) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    return differences(Object.hasOwn(a, key) ? a[key] : undefined, Object.hasOwn(b, key) ? b[key] : undefined, inner);
  });
}

function comparable(sealed: SealedActivation): Record<string, unknown> {
  const { traceparent: _, ...rest } = sealed as Record<string, unknown>;
  return rest;
}

function canonical(value: unknown): string {
  return stringify(value, (_key, inner: unknown) => (isSealed(inner) ? { key_id: inner.key_id, digest: inner.digest } : inner)) ?? "";
}

function isTree(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object";
}

/** What stays of an activation's content beside its end, when the queue has forgotten it: no value, only digests. */
export interface ContentRecord {
  digest: string;
  /** Keys that its secrets' digests were made with. */
  key_ids: string[];
  /** sha256 (hex) of each top-level field. */
  fields: Record<string, string>;
}

export function contentRecord(sealed: SealedActivation): ContentRecord {
  const fields = Object.entries(comparable(sealed)).map(([name, value]) => [name, sha256(canonical(value))] as const);
  return { digest: contentDigest(sealed), key_ids: sealedWith(sealed), fields: Object.fromEntries(fields) };
}

/** Names of the top-level fields in which an activation differs from a recorded one; none when they are the same. */
export function differingFromRecord(record: ContentRecord, sealed: SealedActivation): string[] {
  const { digest, fields } = contentRecord(sealed);
  if (digest === record.digest) return [];
  return [...new Set([...Object.keys(fields), ...Object.keys(record.fields)])].filter((name) => fields[name] !== record.fields[name]);
}
