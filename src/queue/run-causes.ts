// SPDX-License-Identifier: Apache-2.0
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";

const CHUNK = 1_000;

/** Failures of a run that are alike. */
export interface CauseGroup {
  failure_kind: string;
  cause_code: string;
  count: number;
  /** One of them. */
  example: string;
}

/** Activations of the run that ended with a failure, by its cause, the most frequent first. */
export async function runCauses({ redis }: Queues, runId: string): Promise<CauseGroup[]> {
  const groups = new Map<string, CauseGroup>();
  const seen = new Set<string>(); // a scan may come to one again
  for await (const fields of inPieces(redis.hscanStream(keys.causes(runId), { count: CHUNK }), 2 * CHUNK)) {
    for (let index = 0; index < fields.length; index += 2) {
      const [example, cause] = [fields[index]!, fields[index + 1]!];
      if (seen.has(example)) continue;
      seen.add(example);
      const [failure_kind = "", cause_code = ""] = cause.split("/");
      const group = groups.get(cause) ?? { failure_kind, cause_code, count: 0, example };
      groups.set(cause, { ...group, count: group.count + 1 });
    }
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}
