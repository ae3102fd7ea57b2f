// SPDX-License-Identifier: Apache-2.0
import { z } from "@hono/zod-openapi";
import { problemSchema, PROBLEM_TYPE } from "./problem.ts";

/** Parts of routes' descriptions that many share. */

export function json<T extends z.ZodType>(schema: T, description: string) {
  return { description, content: { "application/json": { schema } } };
}

export function problem(description: string) {
  return { description, content: { [PROBLEM_TYPE]: { schema: problemSchema } } };
}

export const away = { 503: problem("the queue cannot be reached, or too many wait already; try again after Retry-After") };

/** Others cannot exist: they are not looked for. */
const AN_ID = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/, "no id: letters, digits, dots, underscores and hyphens");
export const activationParam = z.object({ id: AN_ID.openapi({ example: "act-1" }) });
export const runParam = z.object({ run_id: AN_ID.openapi({ example: "run-1" }) });

/** Seconds to wait for what is not there yet. */
export function waitSeconds(most: number) {
  return z.coerce
    .number()
    .min(0)
    .max(most)
    .default(0)
    .openapi({ description: `seconds to wait for it, at most ${most}` });
}
