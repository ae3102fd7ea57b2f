// SPDX-License-Identifier: Apache-2.0
import type { EvidenceSource } from "../artifacts/open-evidence.ts";
import { readLines } from "../codex/lines.ts";
import { answeredCalls, readTranscript } from "../codex/transcript.ts";
import { ERROR_CLASSES } from "../codex/profiles/texts.ts";
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
  for (const [text, found] of ERROR_CLASSES) {
    const match = text.exec(message);
    if (match !== null) return found ?? match[1] ?? "other";
  }
  return "other";
}
