// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { z } from "zod";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { readValues, type RecordedRun } from "./read-run.ts";

const attemptSchema = z.object({ failure: z.object({ cause_code: z.string() }), charged: z.boolean().catch(true) });

/** Failed attempts by cause, of failures.jsonl: also those that another attempt made good. */
export async function countFailedAttempts(run: RecordedRun): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for await (const { value } of readValues(join(run.path, OUTPUT_FILES.failures))) {
    const cause = attemptSchema.safeParse(value).data?.failure.cause_code;
    if (cause !== undefined) counts[cause] = (counts[cause] ?? 0) + 1;
  }
  return counts;
}
