// SPDX-License-Identifier: Apache-2.0
import type { PauseMark } from "../queue/pause.ts";
import { printable } from "../printable.ts";

/** e.g. " by ann@host since 2027-01-15T08:00:00.000Z (server down)"; less where less was said. Pure. */
export function pausedBy({ by, at, reason }: PauseMark): string {
  return printable(` by ${by}${at === "" ? "" : ` since ${at}`}${reason === "" ? "" : ` (${reason})`}`);
}
