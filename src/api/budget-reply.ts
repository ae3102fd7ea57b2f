// SPDX-License-Identifier: Apache-2.0
import { z } from "@hono/zod-openapi";
import { BUDGET_LIMITS } from "../queue/budget.ts";

const limit = z.int().min(0).nullable();
export const budgetReply = z
  .object({
    max_model_calls: limit,
    max_tokens: limit,
    /** ISO 8601: nothing starts afterwards. */
    not_after: z.string().nullable(),
    /** By attempts that ended, where Codex tells it. */
    used: z.object({ model_calls: z.int().min(0), tokens: z.int().min(0) }),
    /** What keeps the run from starting more. */
    spent: z.enum(BUDGET_LIMITS).nullable(),
  })
  .openapi("Budget");
export type BudgetReply = z.infer<typeof budgetReply>;
