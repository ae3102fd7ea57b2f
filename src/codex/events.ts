// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

/** `item` of an item event: only its type is certain. */
const itemSchema = z.looseObject({ type: z.string(), id: z.string().optional() });
export type CodexItem = z.infer<typeof itemSchema>;

/**
 * What `codex exec --json` prints, as far as we act on it (0.144.4 and 0.171.0). Tolerant: further fields are kept, and
 * the fields of a usage or an error are looked at where they are used.
 */
const eventSchema = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("thread.started"), thread_id: z.string() }),
  z.looseObject({ type: z.literal("turn.started") }),
  z.looseObject({ type: z.literal("turn.completed"), usage: z.unknown().optional() }),
  z.looseObject({ type: z.literal("turn.failed"), error: z.unknown().optional() }),
  /** Trouble with the stream from the model; not the item of the same name. */
  z.looseObject({ type: z.literal("error"), message: z.unknown().optional() }),
  z.looseObject({ type: z.literal("item.started"), item: itemSchema }),
  z.looseObject({ type: z.literal("item.updated"), item: itemSchema }),
  z.looseObject({ type: z.literal("item.completed"), item: itemSchema }),
]);
export type CodexEvent = z.infer<typeof eventSchema>;

const KNOWN_TYPES: ReadonlySet<unknown> = new Set(eventSchema.options.map((option) => option.shape.type.value));

/** An event we know; null for any other JSON object. */
export function parseEvent(value: object): CodexEvent | null {
  if (!("type" in value) || !KNOWN_TYPES.has(value.type)) return null; // cheaper than a parse that fails
  const parsed = eventSchema.safeParse(value);
  return parsed.success ? parsed.data : null;
}

/** The text of an error as Codex writes it: `{message}` or the message itself. */
export function errorText(error: unknown): string {
  const message = error !== null && typeof error === "object" && "message" in error ? error.message : error;
  return typeof message === "string" ? message : (JSON.stringify(message) ?? "unknown error");
}
