// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { SessionFacts } from "../codex/session.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { ResponseItem } from "../contract/response.ts";

/**
 * Characters of one tool output that a result holds: as much as Codex's own transcript keeps of a command's (0.171.0), and more than
 * it shows its model unasked. Codex's events hold up to 1 MiB of it, and those are kept.
 */
const MAX_OUTPUT = 65_536;
/** Gaps go into the result, too. */
const MAX_GAPS = 100;

/**
 * The conversation of the events with {@link excerpts} of its outputs. `fromEvents`: the output of an item as the events tell it,
 * redacted; another one was put together from the transcript.
 */
export function withExcerpts(
  facts: SessionFacts,
  invocation_id: string,
  fromEvents: (itemId: string) => string,
): { facts: SessionFacts; gaps: ObservationGap[] } {
  const wholeIn = (id: string, whole: string): string => (fromEvents(id) === whole ? "events.jsonl" : "transcript.jsonl");
  const { items, gaps } = excerpts(facts.items, invocation_id, wholeIn);
  return { facts: gaps.length === 0 ? facts : { ...facts, items }, gaps };
}

/**
 * Leaves the middle out of long tool outputs, because a result holds each of them several times (response, conversation, attempts)
 * and the evidence holds it whole. What is left out is told in the text and, with the sha256 of the whole, as a gap. Pure; to be
 * given what is redacted, because a cut through a secret leaves a part that nobody knows. `wholeIn`: the evidence that holds the
 * output of an item.
 */
export function excerpts(
  told: readonly ResponseItem[],
  invocation_id: string,
  wholeIn: (itemId: string, whole: string) => string,
): { items: ResponseItem[]; gaps: ObservationGap[] } {
  const gaps: ObservationGap[] = [];
  let unlisted = 0;
  const items = told.map((item) => {
    if (item.type !== "function_call_output" || item.output.length <= MAX_OUTPUT) return item;
    const { id, call_id, output: whole } = item;
    const whole_in = wholeIn(id, whole);
    const sha256 = createHash("sha256").update(whole, "utf8").digest("hex");
    const detail = { tool_call_id: call_id, bytes: Buffer.byteLength(whole, "utf8"), sha256, whole_in };
    if (gaps.length < MAX_GAPS) gaps.push({ code: "tool_output_shortened", invocation_id, detail: JSON.stringify(detail) });
    else unlisted++;
    const head = whole.slice(0, characterBorder(whole, MAX_OUTPUT / 2));
    const tail = whole.slice(characterBorder(whole, whole.length - MAX_OUTPUT / 2));
    const left = whole.length - head.length - tail.length;
    return { ...item, output: `${head}\n[... ${left} characters left out; whole in ${whole_in}, sha256 ${sha256} ...]\n${tail}` };
  });
  if (unlisted > 0) gaps.push({ code: "tool_output_shortened", invocation_id, detail: JSON.stringify({ more: unlisted }) });
  return { items, gaps };
}

/** The index itself, or one more where it is within a pair of surrogates. */
function characterBorder(text: string, index: number): number {
  return (text.charCodeAt(index) & 0xfc00) === 0xdc00 ? index + 1 : index;
}
