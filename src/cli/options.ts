// SPDX-License-Identifier: Apache-2.0
import { InvalidArgumentError } from "commander";
import { MOST_TIMER_SECONDS } from "../contract/duration.ts";
import { nearest } from "../config/nearest.ts";

/** Parsers of option values; commander prints what they throw and the exit code becomes 2. */

export function wholeNumber(least: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least)) throw new InvalidArgumentError(`expected a whole number of at least ${least}, got ${JSON.stringify(text)}.`);
    return value;
  };
}

export const secondsValue = above0("seconds", MOST_TIMER_SECONDS);
export const hoursValue = above0("hours", 87_600);

function above0(unit: string, most: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : Number.NaN;
    if (!(value > 0 && value <= most))
      throw new InvalidArgumentError(`expected ${unit} above 0, at most ${most}, got ${JSON.stringify(text)}.`);
    return value;
  };
}

export function daysValue(text: string): number {
  const value = /^[0-9]{1,5}(\.[0-9]+)?$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw new InvalidArgumentError(`expected days, 0 or more, got ${JSON.stringify(text)}.`);
  return value;
}

export function oneOf<T extends string>(known: readonly T[]): (text: string) => T {
  return (text) => {
    const found = known.find((word) => word === text);
    if (found !== undefined) return found;
    const meant = nearest(text, known);
    throw new InvalidArgumentError(`expected ${known.join(", ")}${meant === null ? "" : `; did you mean ${meant}?`}`);
  };
}
