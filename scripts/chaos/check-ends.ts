// SPDX-License-Identifier: Apache-2.0
import { check, onceEach, type Check } from "./check.ts";
import type { RunFacts } from "./facts.ts";

/** Whether each task has one end, the same everywhere, and the one that it must have. Pure. */
export function endChecks(facts: RunFacts): Check[] {
  return [
    oneLineEach(facts),
    oneEndEach(facts),
    deliveredOnce(facts),
    sameEverywhere(facts),
    expectedEnds(facts),
    finishRecord(facts),
    cancelled(facts),
  ];
}

function oneLineEach({ tasks, lines }: RunFacts): Check {
  return check(
    "results.jsonl: one line for each task",
    tasks.length,
    lines.length,
    onceEach(
      tasks.map(({ task_id }) => task_id),
      lines.map(({ task_id }) => task_id),
    ),
  );
}

function oneEndEach({ tasks, ends }: RunFacts): Check {
  const breaches = onceEach(
    tasks.map(({ task_id }) => task_id),
    ends.map(({ task_id }) => task_id),
  );
  const again = ends
    .filter(({ generation }) => generation !== 0)
    .map(({ activation_id, generation }) => `${activation_id} has generation ${generation}`);
  const changed = ends
    .filter(({ changed }) => changed)
    .map(({ activation_id }) => `the result of ${activation_id} was replaced after it was committed`);
  return check("store: one result for each task, and it stays", tasks.length, ends.length, [...breaches, ...again, ...changed]);
}

function deliveredOnce({ ends, delivered }: RunFacts): Check {
  const name = "results queue: each result once";
  if (delivered === null) return check(name, ends.length, null, ["the results queue could not be read"]);
  return check(
    name,
    ends.length,
    delivered.length,
    onceEach(
      ends.map(({ activation_id }) => activation_id),
      delivered,
    ),
  );
}

function sameEverywhere({ lines, ends }: RunFacts): Check {
  const stored = new Map(ends.map((end) => [end.task_id, end]));
  const breaches = lines.flatMap(({ task_id, capture_key, status }) => {
    const end = stored.get(task_id);
    if (end === undefined || (end.capture_key === capture_key && end.status === status)) return [];
    return [`${task_id}: ${status} by ${capture_key} in results.jsonl, ${end.status} by ${end.capture_key} in the store`];
  });
  return check("results.jsonl and the store say the same", null, null, breaches);
}

function expectedEnds({ tasks, ends, cancels, faults }: RunFacts): Check {
  const asked = new Set(cancels.map(({ activation_id }) => activation_id));
  const killed = new Set(faults.filter(({ fault }) => fault === "codex_kill").flatMap(({ activations }) => activations));
  const kinds = new Map(tasks.map(({ task_id, kind }) => [task_id, kind]));
  const breaches = ends.flatMap(({ task_id, activation_id, status, cause }) => {
    const kind = kinds.get(task_id);
    const wanted = kind === "works" ? status === "completed" : kind === "server_down" ? status === "failed" : cause === "wall_clock";
    // A command of the model ran when its Codex was killed: it cannot be told from the model's own doing, and is final.
    const explained =
      (status === "cancelled" && asked.has(activation_id)) || (cause.startsWith("kill_shaped") && killed.has(activation_id));
    return wanted || explained ? [] : [`${task_id} (${kind ?? "not a task"}) ended ${status} ${cause}`];
  });
  return check("tasks end as they must", ends.length, ends.length - breaches.length, breaches);
}

/** What a result says of its finish call against what the tool server noted itself. */
function finishRecord({ tasks, ends, finishes, runs, faults }: RunFacts): Check {
  const works = new Set(tasks.filter(({ kind }) => kind === "works").map(({ task_id }) => task_id));
  const restarted = faults.some(({ fault }) => fault === "mcp_restart");
  const completed = ends.filter(({ task_id, status }) => status === "completed" && works.has(task_id));
  const breaches = completed.flatMap((end) => {
    const threads = runs.find((run) => run.activation_id === end.activation_id && run.attempt === end.attempt)?.threads ?? [];
    const served = finishes.filter(
      ({ task_id, thread_id }) => task_id === end.task_id && thread_id !== null && threads.includes(thread_id),
    );
    if (end.finish_calls === null) return [`${end.task_id} completed without evidence`];
    if (served.length < end.finish_calls)
      return [`${end.task_id} tells of ${end.finish_calls} finish calls of attempt ${end.attempt}, the tool server of ${served.length}`];
    // The answer to a call can be lost with the server: served, but not heard of.
    if (served.length > end.finish_calls && !restarted)
      return [`${end.task_id} tells of ${end.finish_calls} finish calls, the tool server of ${served.length}`];
    return end.finish_calls === 0 && !restarted ? [`${end.task_id} completed without a finish call`] : [];
  });
  return check(
    "results agree with the tool server's own record of finish calls",
    completed.length,
    completed.length - breaches.length,
    breaches,
  );
}

function cancelled({ ends, cancels }: RunFacts): Check {
  const breaches = cancels.flatMap(({ activation_id, outcome }) => {
    const end = ends.find((each) => each.activation_id === activation_id);
    return outcome === "done" && end !== undefined && end.status !== "cancelled"
      ? [`${activation_id} was cancelled before it began, and ended ${end.status}`]
      : [];
  });
  return check("what was cancelled before it began does not run", cancels.length, null, breaches);
}
