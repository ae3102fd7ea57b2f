// SPDX-License-Identifier: Apache-2.0
import { RollcallError } from "../errors.ts";
import type { Enqueuer } from "./enqueuer.ts";
import type { ResultFacts } from "./facts.ts";
import type { Fleet } from "./fleet.ts";
import type { ResultsFiles } from "./results-files.ts";
import type { Tally } from "./tally.ts";

/** A task of its own may be broken (its server is down); so many may fail before the set-up is blamed. */
const SPARE_PROBES = 2;

/**
 * Waits until as many activations as were queued so far have begun, before the rest is queued: a set-up in which
 * nothing starts then costs one task, not all of them. Throws RollcallError "probe_failed".
 */
export async function probe(context: {
  fleet: Fleet;
  tally: Tally;
  files: ResultsFiles;
  enqueuer: Enqueuer;
  ids: readonly string[];
  signal: AbortSignal;
}): Promise<void> {
  const { fleet, tally, files, enqueuer, signal } = context;
  let waiting = [...context.ids];
  let failures = 0;
  while (waiting.length > 0 && !signal.aborted) {
    await Promise.all(waiting.map((id) => fleet.untilBegun(id, { signal: AbortSignal.any([signal, tally.taken(id)]) })));
    const ended = waiting.filter((id) => tally.taken(id).aborted);
    const failed = ended.map((id) => files.recorded.get(id)!).filter((facts) => !began(facts));
    failures += failed.length;
    if (failures > SPARE_PROBES) {
      const causes = [...new Set(failed.map((facts) => facts.failure?.cause_code ?? "unknown"))].join(", ");
      throw new RollcallError(
        "probe_failed",
        `none of the first ${failures} tasks could be started (${causes}), so the rest was not queued: see failures.jsonl and ` +
          "`rollcall doctor`, then give the same command again; --probe 0 skips this check",
        { exitCode: 3 },
      );
    }
    waiting = failed.length === 0 ? [] : await enqueuer.next(failed.length, signal);
  }
}

/** Whether an ended activation shows that sessions can be started here. Pure. */
export function began(facts: ResultFacts): boolean {
  const cause = facts.failure?.cause_code ?? "";
  return !facts.startup_failed && !["sandbox_failed", "binary_missing", "model_key_missing", "codex_version_mismatch"].includes(cause);
}
