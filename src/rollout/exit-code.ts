// SPDX-License-Identifier: Apache-2.0
import type { Summary } from "./summary.ts";

export const EXIT = {
  ok: 0,
  someFailed: 1,
  usage: 2,
  noneCompleted: 3,
  nothingStarted: 4,
  budget: 5,
  internal: 70,
  interrupted: 75,
} as const;

/**
 * How a batch ended, for scripts. completed and incomplete are gradable and count as success; a batch without tasks is
 * an error unless it was allowed. Pure.
 */
export function exitCodeOf(summary: Summary, options: { allowEmpty: boolean }): number {
  const { by_status: by, total } = summary;
  if (summary.interrupted) return EXIT.interrupted;
  if (summary.budget !== null && summary.budget.stopped_by !== null) return EXIT.budget;
  if (total === 0) return options.allowEmpty ? EXIT.ok : EXIT.usage;
  const gradable = by.completed + by.incomplete;
  if (gradable === total) return EXIT.ok;
  if (gradable > 0) return EXIT.someFailed;
  const nothingStarted = summary.started === 0 && by.refused + by.cancelled === total;
  return nothingStarted ? EXIT.nothingStarted : EXIT.noneCompleted;
}
