// SPDX-License-Identifier: Apache-2.0
import type { Problem } from "../api/problem.ts";
import { RollcallError } from "../errors.ts";

type ProblemEntry = NonNullable<Problem["errors"]>[number];

/** Errors shown in the message; all are in `errors`. */
const SHOWN = 5;

/** An answer of the server that is no success, as its problem+json says it. */
export class ApiError extends RollcallError {
  readonly status: number;
  /** One for each field that is not accepted. */
  readonly errors: readonly ProblemEntry[];
  /** For the operator of the server: the same id is in its log. */
  readonly requestId: string | null;
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter: number | null;

  constructor(what: string, { problem, retryAfter }: { problem: Problem; retryAfter: number | null }) {
    const { code, status, detail = problem.title, errors = [], request_id } = problem;
    const fields = errors.slice(0, SHOWN).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
    if (errors.length > SHOWN) fields.push(`and ${errors.length - SHOWN} more`);
    super(code, `${what}: ${[detail, ...fields].join("; ")}${request_id === undefined ? "" : ` (request ${request_id})`}`);
    this.name = "ApiError";
    this.status = status;
    this.errors = errors;
    this.requestId = request_id ?? null;
    this.retryAfter = retryAfter;
  }
}

/** True when the server says that it does not know what was asked for. */
export function isUnknown(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** The answer; null when the server does not know what was asked for. */
export function unlessUnknown<T>(asked: Promise<T>): Promise<T | null> {
  return asked.catch((error: unknown) => {
    if (isUnknown(error)) return null;
    throw error;
  });
}
