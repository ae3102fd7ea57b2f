// SPDX-License-Identifier: Apache-2.0
import type { StopReason } from "../activation/ports.ts";
import { CAUSE_CODES, failureKindSchema } from "../contract/failure.ts";
import { resultSchema, statusSchema, type ActivationResult } from "../contract/result.ts";
import { closed } from "./closed.ts";

/** How something ended, in words of closed lists. */
export const END_LABELS = ["status", "cause_class", "failure_kind", "cause_code"] as const;
export type EndLabels = Record<(typeof END_LABELS)[number], string>;

const STATUSES = new Set<string>(statusSchema.options);
const CLASSES = new Set<string>(resultSchema.shape.cause_class.unwrap().options);
const KINDS = new Set<string>(failureKindSchema.options);
const CAUSES = new Set<string>([...CAUSE_CODES, ...resultSchema.shape.incomplete_cause.unwrap().options]);

/** Refusal codes count as "other": what is refused at admission does not get this far. Pure. */
export function endLabels(
  end: Pick<ActivationResult, "status" | "cause_class" | "incomplete_cause"> & {
    failure: Pick<NonNullable<ActivationResult["failure"]>, "failure_kind" | "cause_code"> | null;
  },
): EndLabels {
  return {
    status: closed(STATUSES, end.status),
    cause_class: closed(CLASSES, end.cause_class),
    failure_kind: closed(KINDS, end.failure?.failure_kind),
    cause_code: closed(CAUSES, end.failure?.cause_code ?? end.incomplete_cause),
  };
}

/** Of an attempt that ended nothing. Pure. */
export function handedBackLabels(reason: StopReason["kind"]): EndLabels {
  return {
    status: closed(STATUSES, null),
    cause_class: closed(CLASSES, null),
    failure_kind: closed(KINDS, null),
    cause_code: closed(CAUSES, reason),
  };
}

/** As one word without blanks, for a field of a hash. Pure. */
export function endWord(labels: EndLabels): string {
  return END_LABELS.map((name) => labels[name]).join("/");
}

/** What {@link endWord} wrote; null for what it did not write, or what another version did. Pure. */
export function readEndWord(word: string): EndLabels | null {
  const parts = word.split("/");
  if (parts.length !== END_LABELS.length) return null;
  const [status, cause_class, failure_kind, cause_code] = parts as [string, string, string, string];
  return {
    status: closedWord(STATUSES, status),
    cause_class: closedWord(CLASSES, cause_class),
    failure_kind: closedWord(KINDS, failure_kind),
    cause_code: closedWord(CAUSES, cause_code),
  };
}

function closedWord(list: ReadonlySet<string>, word: string): string {
  return word === closed(list, null) ? word : closed(list, word);
}
