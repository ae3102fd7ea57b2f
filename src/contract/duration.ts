// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

/** The longest that a timer of Node can wait, 24.8 days; one that should wait longer fires at once. */
export const MOST_TIMER_MS = 2 ** 31 - 1;
export const MOST_TIMER_SECONDS = Math.floor(MOST_TIMER_MS / 1_000);

/** A time of which there is some, and which a timer can wait. */
export const seconds = z.number().positive().max(MOST_TIMER_SECONDS);

/** The same in ms, at least `least`. */
export function milliseconds(least: number): z.ZodInt {
  return z.int().min(least).max(MOST_TIMER_MS);
}

/** How long something is kept; nothing waits for its end. */
export const days = z.number().positive().max(36_500);
