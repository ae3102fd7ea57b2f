// SPDX-License-Identifier: Apache-2.0
import pMap from "p-map";
import type { Reference } from "../references/reference.ts";
import { checkTasks, readTasks, type TaskCheck, type TaskSource } from "./tasks.ts";

/** At once; the server of a benchmark's files answers more of them more slowly. */
const AT_ONCE = 8;

/**
 * Checks a task file, and has every file that its rows name on this machine: what is wrong with the rows themselves is told
 * by `accept` before anything is fetched, and files that cannot be had are problems of their rows. Throws what `accept` throws,
 * and RollcallError "tasks_unreadable".
 */
export async function checkWithReferences(
  source: TaskSource,
  accept: (check: TaskCheck) => void,
  say: (line: string) => void,
): Promise<TaskCheck> {
  const first = await checkTasks(source, "check");
  accept(first);
  if (first.references === 0 || source.referenceFiles === undefined) return first;
  const { referenceFiles } = source;
  say(`reading or fetching ${first.references} reference files`);
  await pMap(referencesIn(source), (reference) => referenceFiles.get(reference), { concurrency: AT_ONCE });
  const check = await checkTasks(source, "read");
  accept(check);
  return check;
}

async function* referencesIn(source: TaskSource): AsyncGenerator<Reference> {
  for await (const row of readTasks(source, "check")) if (row.ok) yield* row.references;
}
