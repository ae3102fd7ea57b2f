// SPDX-License-Identifier: Apache-2.0

/** Rows by task, in the order in which the tasks come. The name of the task file says nothing: ids pair tasks of two runs. Pure. */
export function byTask<Row extends { task_id: string }>(rows: readonly Row[]): Map<string, Row[]> {
  const tasks = new Map<string, Row[]>();
  for (const row of rows) {
    const repeats = tasks.get(row.task_id);
    if (repeats === undefined) tasks.set(row.task_id, [row]);
    else repeats.push(row);
  }
  return tasks;
}
