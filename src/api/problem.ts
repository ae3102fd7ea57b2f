// SPDX-License-Identifier: Apache-2.0
import { z } from "@hono/zod-openapi";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { Refusal } from "../contract/refusals.ts";
import { RollcallError } from "../errors.ts";
import { redisTrouble } from "../redis/trouble.ts";

export const PROBLEM_TYPE = "application/problem+json";

/** RFC 9457, with a stable `code`, and one entry in `errors` for each field that is not accepted. */
export const problemSchema = z
  .object({
    type: z.string().openapi({ example: "urn:rollcall:problem:activation_refused" }),
    title: z.string(),
    status: z.int(),
    code: z.string(),
    detail: z.string().optional(),
    /** For the operator: the same id is in the log. */
    request_id: z.string().optional(),
    errors: z.array(z.object({ code: z.string(), path: z.string(), message: z.string(), accepted: z.string().optional() })).optional(),
  })
  .openapi("Problem");
export type Problem = z.infer<typeof problemSchema>;
type ProblemEntry = NonNullable<Problem["errors"]>[number];

/** An answer that is no success. Thrown by handlers; the app turns it into problem+json. Its texts hold no secrets. */
export class ApiProblem extends Error {
  readonly status: ContentfulStatusCode;
  readonly code: string;
  readonly errors: ProblemEntry[] | undefined;
  readonly headers: Record<string, string>;

  constructor(
    status: ContentfulStatusCode,
    code: string,
    message: string,
    more: { errors?: readonly ProblemEntry[]; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.name = "ApiProblem";
    this.status = status;
    this.code = code;
    this.errors = more.errors === undefined ? undefined : [...more.errors];
    this.headers = more.headers ?? {};
  }
}

export function refusedProblem(refusals: readonly Refusal[], at = ""): ApiProblem {
  const errors = refusals.map((refusal) => ({ ...refusal, path: at + refusal.path }));
  return new ApiProblem(422, "activation_refused", "the request asks for what cannot be run; nothing was queued", { errors });
}

/** How a thrown thing is answered; null = a fault of ours, which is logged and told without its words. */
export function problemOf(thrown: unknown): ApiProblem | null {
  if (thrown instanceof ApiProblem) return thrown;
  // Of hono's own validators: JSON that is none.
  if (thrown instanceof HTTPException && thrown.status < 500)
    return new ApiProblem(thrown.status, "request_invalid", thrown.message || "the request is not usable");
  const trouble = redisTrouble(thrown);
  if (trouble !== null) {
    const [code, text] =
      trouble.kind === "away" ? ["redis_away", "the queue cannot be reached just now; try again"] : ["redis_refuses", trouble.text];
    return new ApiProblem(503, code, text, { cause: thrown, headers: { "retry-after": "2" } });
  }
  if (thrown instanceof RollcallError && thrown.code === "activation_too_large") return new ApiProblem(413, thrown.code, thrown.message);
  return null;
}
