// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { hasErrno, RollcallError } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import type { BudgetLimit, BudgetState } from "../queue/budget.ts";
import type { Fleet } from "./fleet.ts";

const HOUR_MS = 3_600_000;
/** A start that is killed forgets at most so much of its time. */
const SAVED_EVERY_MS = 10_000;

const limit = z.number().min(0).nullable();
const limitsSchema = z.object({
  max_model_calls: limit,
  max_tokens: limit,
  /** Of all starts together, while their commands ran. */
  max_hours: limit,
});
/** What a run may use before it starts nothing more; null = without this limit. */
export type BatchBudget = z.infer<typeof limitsSchema>;

const spendingSchema = limitsSchema.extend({
  /** By all starts. Model calls and tokens are those of attempts that ended, where Codex tells them. */
  used: z.object({ model_calls: z.number().min(0), tokens: z.number().min(0), hours: z.number().min(0) }),
  /** The limit that kept the rest from being started; null = none. */
  stopped_by: z.enum(["max_model_calls", "max_tokens", "max_hours"]).nullable(),
});
/** How a run stands with its budget; budget.json, and a part of summary.json. */
export type Spending = z.infer<typeof spendingSchema>;

const fileSchema = spendingSchema.extend({ schema: z.literal("rollcall.budget/1"), run_id: z.string() });

/** The budget of an output directory; null when nothing was noted yet. Throws RollcallError "out_foreign". */
export async function readSpending(path: string): Promise<Spending | null> {
  try {
    return fileSchema.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return null;
    throw new RollcallError(
      "out_foreign",
      `${path} was not written by this program, or is torn: restore it, or remove it to count from nothing`,
      {
        cause: error,
      },
    );
  }
}

export type BudgetHolder = Pick<Fleet, "setBudget" | "budget">;

/** The budget of one start of a batch, from what earlier starts used on. */
export interface BudgetWatch {
  /** Gives it to the fleet, which holds it. */
  begin(fleet: BudgetHolder): Promise<BudgetState>;
  /** What the fleet has used by now; kept from time to time. */
  look(fleet: BudgetHolder): Promise<BudgetState>;
  /** Keeps how it stands now. */
  end(stoppedBy: BudgetLimit | null): Promise<Spending>;
}

/** How long the commands of all starts have worked on it, in ms. Pure. */
export function workedMs({ used }: Spending): number {
  return Math.round(used.hours * HOUR_MS);
}

/** `startedAt` and `now` in ms, of a clock that never goes back. Throws RollcallError "out_foreign", unless nothing is limited: then a torn file counts as none. */
export async function openBudget(
  path: string,
  options: { runId: string; limits: BatchBudget; startedAt?: number; now?: () => number },
): Promise<BudgetWatch> {
  const { runId, limits, now = () => performance.now() } = options;
  const isLimited = Object.values(limits).some((limit) => limit !== null);
  const earlier = await readSpending(path).catch((error: unknown) => {
    if (isLimited) throw error;
    return null;
  });
  const before = earlier?.used ?? { model_calls: 0, tokens: 0, hours: 0 };
  const { startedAt = now() } = options;
  let used = { model_calls: before.model_calls, tokens: before.tokens };
  let savedAt = startedAt;
  let saving: Promise<unknown> = Promise.resolve();

  async function save(stoppedBy: BudgetLimit | null): Promise<Spending> {
    savedAt = now();
    const hours = Number((before.hours + (savedAt - startedAt) / HOUR_MS).toFixed(6));
    const spending: Spending = { ...limits, used: { ...used, hours }, stopped_by: flagOf(stoppedBy) };
    // One after the other: a look that is still saving must not write over the end.
    saving = saving.then(() =>
      replaceFile(path, `${JSON.stringify({ schema: "rollcall.budget/1", run_id: runId, ...spending }, null, 2)}\n`),
    );
    await saving;
    return spending;
  }

  const watch: BudgetWatch = {
    async begin(fleet) {
      const { max_model_calls, max_tokens, max_hours } = limits;
      const left = max_hours === null ? null : Math.max(0, Math.round((max_hours - before.hours) * HOUR_MS - (now() - startedAt)));
      await fleet.setBudget(runId, { max_model_calls, max_tokens, starts_for_ms: left }, used);
      return watch.look(fleet);
    },
    async look(fleet) {
      const state = await fleet.budget(runId);
      // Looks may overtake each other, and a Redis that was emptied knows less: what was used once stays used.
      used = {
        model_calls: Math.max(used.model_calls, state.used.model_calls),
        tokens: Math.max(used.tokens, state.used.tokens),
      };
      if (now() - savedAt >= SAVED_EVERY_MS) await save(null);
      return state;
    },
    end(stoppedBy) {
      saving = saving.catch(() => undefined); // whoever saved was told
      return save(stoppedBy);
    },
  };
  return watch;
}

function flagOf(stoppedBy: BudgetLimit | null): Spending["stopped_by"] {
  return stoppedBy === "not_after" ? "max_hours" : stoppedBy;
}

/** For people: what of the budget is used, e.g. "81,200 of 100,000 tokens"; null without one. Pure. */
export function budgetText({ max_model_calls, max_tokens, max_hours, used }: Spending): string | null {
  const count = (value: number): string => value.toLocaleString("en-US");
  const parts = [
    ...(max_tokens === null ? [] : [`${count(used.tokens)} of ${count(max_tokens)} tokens`]),
    ...(max_model_calls === null ? [] : [`${count(used.model_calls)} of ${count(max_model_calls)} model calls`]),
    ...(max_hours === null ? [] : [`${used.hours.toFixed(2)} of ${max_hours} hours`]),
  ];
  return parts.length === 0 ? null : parts.join(", ");
}
