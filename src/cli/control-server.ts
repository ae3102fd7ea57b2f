// SPDX-License-Identifier: Apache-2.0
import { resolve } from "node:path";
import type { StateReply } from "../api/messages.ts";
import type { RunRowReply } from "../api/row-lines.ts";
import type { RunReply } from "../api/run-view.ts";
import { unlessUnknown } from "../client/api-error.ts";
import type { Client } from "../client/client.ts";
import { RollcallError } from "../errors.ts";
import { answerTo, type ControlAction } from "../queue/answers.ts";
import { untilNone } from "../queue/await-ends.ts";
import type { ActivationState } from "../queue/find-activation.ts";
import type { RunStatus } from "../queue/run-status.ts";
import type { Phase } from "../resources/record.ts";
import { EXIT } from "../rollout/exit-code.ts";
import type { ControlFlags } from "./control.ts";
import type { Reply } from "./control-actions.ts";
import { cancelText, giveAgain, pauseText, retryText, type Producer } from "./control-text.ts";
import { manifestOf, runOf } from "./desk.ts";
import { findTask, type Place } from "./find-task.ts";
import { activationLines, runLines, type RunFacts } from "./show-status.ts";

type ServerTarget = { kind: "run"; run: RunReply } | { kind: "activation"; found: StateReply };

/** What {@link control} does, through a server's API. Who asks is the key. Throws RollcallError. */
export async function controlServer(action: ControlAction, client: Client, id: string, flags: ControlFlags): Promise<Reply> {
  const target = await findThere(client, id, { run: flags.run === true, out: flags.out });
  switch (action) {
    case "cancel":
      return target.kind === "run" ? cancelWhole(client, target.run, flags) : cancelOne(client, target.found, flags);
    case "pause":
    case "resume":
      return setPause(action, client, target, flags);
    case "retry":
      return target.kind === "run" ? retryWhole(client, await producerOf(target.run.run_id, flags)) : retryOne(client, target.found, flags);
    case "status":
      return target.kind === "run" ? showRun(client, target.run) : showActivation(target.found);
    default:
      return action satisfies never;
  }
}

/** An activation first, since that is the smaller thing, unless `run`; then a run; then a task. Throws RollcallError "id_unknown", "id_ambiguous". */
export async function findThere(client: Client, id: string, options: { run: boolean; out?: string | undefined }): Promise<ServerTarget> {
  const isId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/.test(id); // a task may have any name
  const found = options.run || !isId ? null : await unlessUnknown(client.activation(id));
  if (found !== null) return { kind: "activation", found };
  const run = isId ? await unlessUnknown(client.run(id)) : null;
  if (run !== null) return { kind: "run", run };
  if (options.run) throw new RollcallError("id_unknown", `${JSON.stringify(id.slice(0, 200))} is no run that the server knows`);
  const { out } = options;
  const task = await findTask(id, { out: out ?? null, run: out === undefined ? null : await runOf(out) }, placeAt(client));
  return { kind: "activation", found: await client.activation(task) };
}

function placeAt(client: Client): Place {
  return {
    name: "the server",
    runs: async () => (await client.runs({ limit: 50 })).runs.map(({ run_id }) => run_id),
    async known(ids) {
      if (ids.length === 0) return [];
      const { activations } = await client.activations(ids);
      return activations.flatMap(({ activation_id, state }) => (state === "unknown" ? [] : [activation_id]));
    },
    async some(runId) {
      const some: RunRowReply[] = [];
      for (const state of ["ended", "waiting"] as const)
        for await (const row of client.rows(runId, { state, limit: 1_000 })) some.push(row);
      return some;
    },
  };
}

async function cancelOne(client: Client, found: StateReply, flags: ControlFlags): Promise<Reply> {
  const { activation_id } = found;
  const { state, outcome, run_id } = await client.cancelActivation(activation_id, { reason: flags.reason });
  const look = async (): Promise<number> => ((await client.activation(activation_id)).state === "ended" ? 0 : 1);
  const left = outcome === "nothing" ? 0 : await untilNone(look, flags.wait * 1_000);
  const { status } = await client.activation(activation_id);
  return {
    data: { activation_id, run_id, state, outcome, status, still_ending: left },
    lines: cancelText(activation_id, [{ state, count: 1 }], { left, status, out: flags.out }),
    exitCode: left === 0 ? EXIT.ok : EXIT.someFailed,
  };
}

async function cancelWhole(client: Client, { run_id, ended }: RunReply, flags: ControlFlags): Promise<Reply> {
  const counts = (await client.cancelRun(run_id, { reason: flags.reason })).found;
  const left = await untilNone(async () => leftOf(await client.run(run_id)), flags.wait * 1_000);
  const found = (Object.entries(counts) as [ActivationState, number][]).map(([state, count]) => ({ state, count }));
  const before = Object.values(ended).reduce((sum, count) => sum + count, 0);
  if (before > 0) found.push({ state: "ended", count: before });
  return {
    data: {
      run_id,
      found: found.map(({ state, count }) => ({ state, count, outcome: answerTo("cancel", state).outcome })),
      still_ending: left,
    },
    lines: cancelText(`run ${run_id}`, found, { left, status: null, out: flags.out }),
    exitCode: left === 0 ? EXIT.ok : EXIT.someFailed,
  };
}

function leftOf({ waiting, parked, delayed, running }: RunReply): number {
  return waiting + parked + delayed + running;
}

async function setPause(action: "pause" | "resume", client: Client, target: ServerTarget, flags: ControlFlags): Promise<Reply> {
  if (target.kind === "activation")
    throw new RollcallError("run_needed", `${action} is of whole runs, and ${target.found.activation_id} is an activation`);
  const { run_id } = target.run;
  const { changed } = action === "pause" ? await client.pauseRun(run_id, { reason: flags.reason }) : await client.resumeRun(run_id);
  const status = statusOf(await client.run(run_id));
  return { data: { changed, ...status, run_id }, lines: pauseText(action, run_id, changed, status), exitCode: EXIT.ok };
}

async function producerOf(run_id: string, { out, server }: ControlFlags): Promise<Producer & { run_id: string }> {
  const manifest = out === undefined ? null : await manifestOf(resolve(out));
  return manifest === null || manifest.pulled_from !== undefined
    ? { run_id, out: undefined, tasks: null, server }
    : { run_id, out, tasks: manifest.tasks.path, server };
}

async function retryOne(client: Client, { activation_id: id, run_id }: StateReply, flags: ControlFlags): Promise<Reply> {
  const answer = await client.retryActivation(id);
  const { workers } = await client.workers();
  const lines = retryText(id, [answer], { from: await producerOf(run_id ?? "RUN", flags), workers: workers.length });
  return { data: { activations: [answer] }, lines, exitCode: answer.outcome === "done" ? EXIT.ok : EXIT.someFailed };
}

async function retryWhole(client: Client, from: Producer & { run_id: string }): Promise<Reply> {
  const answer = await client.retryRun(from.run_id);
  const { queued_again, impossible } = answer;
  const lost = impossible.secrets_deleted + impossible.job_removed;
  const lines = [`${queued_again} of run ${from.run_id}: ${answerTo("retry", "ended").text}`];
  if (lost > 0) lines.push(`${lost} not retried: their secrets or jobs are gone from the queue; ${giveAgain(from)}`);
  return { data: { ...answer }, lines, exitCode: lost === 0 ? EXIT.ok : EXIT.someFailed };
}

async function showRun(client: Client, run: RunReply): Promise<Reply> {
  const { run_id } = run;
  const [{ workers, absent_ms, refusing_models }, breaker] = await Promise.all([client.workers({ run_id }), client.breaker(run_id)]);
  const loads = workers.map((worker) => ({ ...worker, running: worker.running ?? 0 }));
  const { with_server: _, ...phases } = run.rollouts ?? { with_server: 0 };
  const rollouts = run.rollouts === null ? {} : { rollouts: phases as Record<Phase, number> };
  const facts: RunFacts = { status: statusOf(run), workers: loads, breaker, refusing_models, workers_absent_ms: absent_ms, ...rollouts };
  return {
    data: { ...run, workers, breaker, refusing_models, workers_absent_ms: absent_ms },
    lines: runLines(run_id, facts),
    exitCode: EXIT.ok,
  };
}

function showActivation(found: StateReply): Reply {
  return { data: { ...found }, lines: activationLines(found, null, undefined, found.last_event), exitCode: EXIT.ok };
}

function statusOf({ paused, ended, rollouts, ...run }: RunReply): RunStatus {
  return {
    ...run,
    with_server: rollouts?.with_server ?? 0,
    ended: Object.fromEntries(Object.entries(ended).filter(([, count]) => count > 0)),
    paused: paused !== null,
    pause: paused,
  };
}
