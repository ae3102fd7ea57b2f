// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Row, VerifyAnswer } from "./wire.ts";

/** What of a verifier's answer stands in a line of results.jsonl. */
export interface Verdict {
  reward: number;
  /** Its own fields under their own names; without the row and the response, which it sends back. */
  fields: Record<string, unknown>;
  /** Some were left out for their size. */
  cut: boolean;
}

const MAX_FIELDS_BYTES = 64 * 1024;
const MAX_KEPT_BYTES = 1_024;
const ECHOED = new Set(["response", "responses_create_params", "reward"]);

/** Pure. */
export function verdictOf(answer: VerifyAnswer, row: Row): Verdict {
  const own = Object.entries(answer).filter(
    ([name, value]) => !ECHOED.has(name) && !(Object.hasOwn(row, name) && isDeepStrictEqual(row[name], value)),
  );
  const small = own.filter(([, value]) => bytesOf(value) <= MAX_KEPT_BYTES);
  const cut = own.length > small.length && bytesOf(Object.fromEntries(own)) > MAX_FIELDS_BYTES;
  return { reward: answer.reward, fields: Object.fromEntries(cut ? small : own), cut };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? "", "utf8");
}
