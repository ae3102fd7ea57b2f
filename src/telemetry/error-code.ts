// SPDX-License-Identifier: Apache-2.0
import { StageFailure } from "../activation/stage-failure.ts";
import { ApiProblem } from "../api/problem.ts";
import { RollcallError } from "../errors.ts";

/** What a span says of an error: a word of ours, never its message, which may be anybody's. */
export function codeOfError(thrown: unknown): string {
  if (thrown instanceof StageFailure) return thrown.failure.cause_code;
  if (thrown instanceof RollcallError || thrown instanceof ApiProblem) return thrown.code;
  return "error";
}
