// SPDX-License-Identifier: Apache-2.0
import { quantileSorted } from "simple-statistics";

// How numbers are made and written, the same in summary, report, commands and pages.

/**
 * The value at `share` of the way from the first of the sorted values to the last; between two of them by linear interpolation, as in
 * spreadsheets and NumPy. So the median of an even number is the mean of the middle two. null of none. Pure.
 */
export function quantile(sorted: readonly number[], share: number): number | null {
  return sorted.length === 0 ? null : quantileSorted(sorted, share);
}

/** "850 ms", "12.3 s", "4 min 05 s", "2 h 03 min", "3 d 4 h"; "-" of null. Pure. */
export function durationText(ms: number | null): string {
  if (ms === null) return "-";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The same to the second, or the minute: of what is a guess, changes as it is read, or stands on an axis. Pure. */
export function roughDurationText(ms: number): string {
  const step = ms < 5_970_000 ? 1_000 : 60_000;
  const text = durationText(Math.round(ms / step) * step);
  return text === "0 ms" ? "0 s" : text.replace(/\.0(?= s$)| 00 (s|min)$/, "");
}

function two(count: number): string {
  return String(count).padStart(2, "0");
}
