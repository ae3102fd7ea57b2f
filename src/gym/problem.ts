// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "../contract/refusals.ts";

/** What callers of this protocol get instead of problem+json: `{detail}`, always a string. Holds no secrets. */
export class GymProblem extends Error {
  readonly status: 403 | 404 | 409 | 413 | 422 | 500 | 502 | 503;

  constructor(status: GymProblem["status"], detail: string) {
    super(detail);
    this.name = "GymProblem";
    this.status = status;
  }
}

const MOST = 2_000;

/** 422: final for the caller, who must not ask again. */
export function refused(refusals: readonly Pick<Refusal, "path" | "message">[]): GymProblem {
  const texts = refusals.map(({ path, message }) =>
    path === "" ? message : `${path.replace(/^tool_grants/, "tool_accesses")}: ${message}`,
  );
  return new GymProblem(422, texts.join("; ").slice(0, MOST));
}

/** 409: another state of the session than the request needs. */
export function conflict(detail: string): GymProblem {
  return new GymProblem(409, detail);
}
