// SPDX-License-Identifier: Apache-2.0
import type { ByteRange } from "../artifacts/types.ts";

/**
 * What a Range header asks of `size` bytes: null = all of them (no header, another unit, or several ranges, which may be
 * ignored: RFC 9110, 14.2), "unsatisfiable" = 416. Pure.
 */
export function rangeOf(header: string | undefined, size: number): ByteRange | "unsatisfiable" | null {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "") ?? [];
  if (first === "" && last === "") return null;
  if (first === "")
    return last === "0" || Number(last) === 0 || size === 0 ? "unsatisfiable" : { start: Math.max(0, size - Number(last)), end: size - 1 };
  const start = Number(first);
  const end = last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== "" && Number(last) < start) return null; // not a range
  return start >= size ? "unsatisfiable" : { start, end };
}
