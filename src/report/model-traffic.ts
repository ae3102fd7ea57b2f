// SPDX-License-Identifier: Apache-2.0
import type { EvidenceSource } from "../artifacts/open-evidence.ts";
import { readLines } from "../codex/lines.ts";
import { answeredCalls, readTranscript } from "../codex/transcript.ts";
import type { RolloutRow } from "./rollout-row.ts";

/** What a rollout asked of the model server, in all its attempts. */
export interface ModelTraffic {
  /** Calls that were answered, so with HTTP 200; null = of an attempt neither record nor transcript is there. */
  answered: number | null;
  /** Answers that were errors, by {@link errorClass}, as far as Codex tells: what it repeats in silence is not among them. */
  errors: Record<string, number>;
  /** null = the events of an attempt that may tell of errors are not there. */
  errors_known: boolean;
}

const MAX_EVENT_BYTES = 1024 * 1024;

/** Reads transcripts and events where the result itself does not tell. In bounded memory; a file that is not there is no error. */
export async function readModelTraffic(store: EvidenceSource, row: RolloutRow): Promise<ModelTraffic> {
  const traffic: ModelTraffic = { answered: 0, errors: {}, errors_known: true };
  for (const { attempt, model_calls, may_tell_errors } of row.attempts) {
    const answered = model_calls ?? (await readAnswered(store, row.activation_id, attempt));
    traffic.answered = traffic.answered === null || answered === null ? null : traffic.answered + answered;
    if (may_tell_errors && !(await addErrors(store, row.activation_id, attempt, traffic.errors))) traffic.errors_known = false;
  }
  return traffic;
}

async function readAnswered(store: EvidenceSource, activationId: string, attempt: number): Promise<number | null> {
  try {
    return answeredCalls(await readTranscript(store.open(activationId, attempt, "transcript.jsonl")));
  } catch {
    return null;
  }
}

async function addErrors(store: EvidenceSource, activationId: string, attempt: number, errors: Record<string, number>): Promise<boolean> {
  try {
    for await (const line of readLines(store.open(activationId, attempt, "events.jsonl"), MAX_EVENT_BYTES)) {
      const message = line.kind === "whole" ? errorMessage(line.text) : null;
      if (message === null) continue;
      const found = errorClass(message);
      errors[found] = (errors[found] ?? 0) + 1;
    }
    return true;
  } catch {
    return false;
  }
}

/** The text of a top-level error event; null for any other line. Lines are `[seconds, event]`. */
function errorMessage(text: string): string | null {
  if (!text.includes('"type":"error"')) return null;
  try {
    const [, event] = JSON.parse(text) as [number, { type?: unknown; message?: unknown }];
    return event.type === "error" && typeof event.message === "string" ? event.message : null;
  } catch {
    return null; // a line that was cut off
  }
}

/**
 * What kind of answer Codex's error text tells of (0.144.4 and 0.171.0): an HTTP status where the text has it, "5xx" and "400" where
 * Codex replaces or passes on the body, "context_length", "cut_off" for a connection or stream that broke, "max_output_tokens", "other". Pure.
 */
export function errorClass(message: string): string {
  if (/context_length_exceeded|ran out of room in the model.s context window/.test(message)) return "context_length";
  const status = /(?:unexpected status|last status:) (\d{3})\b/.exec(message)?.[1];
  if (status !== undefined) return status;
  if (/Incomplete response returned, reason: max_output_tokens/.test(message)) return "max_output_tokens";
  if (/re currently experiencing high demand/.test(message)) return "5xx";
  if (message.startsWith("Quota exceeded")) return "429";
  if (message.startsWith(`{"error":`)) return "400";
  if (/stream disconnected before completion|Connection failed|error sending request/.test(message)) return "cut_off";
  return "other";
}
