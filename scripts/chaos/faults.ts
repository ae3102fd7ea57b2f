// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { cancelActivation } from "../../src/queue/cancel.ts";
import type { Queues } from "../../src/queue/queues.ts";
import { markedProcesses, readProc, sendSignal, treeOf } from "../../src/sandbox/processes.ts";
import type { TestRedis } from "../../test/support/redis.ts";
import type { SmallDisk } from "./disk.ts";
import type { InjectedFault } from "./facts.ts";
import type { Fleet, Member } from "./fleet.ts";
import type { ChaosModel } from "./model.ts";
import type { ChaosOffice } from "./office.ts";
import type { Fault, Injection } from "./schedule.ts";
import type { Watch } from "./watch.ts";

/** What faults are done to. */
export interface Rig {
  fleet: Fleet;
  redis: TestRedis;
  model: ChaosModel;
  office: ChaosOffice;
  /** null with the reason: the disk cannot be filled here. */
  disk: { disk: SmallDisk } | { disk: null; why: string };
  queues: Queues;
  watch: Watch;
  cancels: { activation_id: string; outcome: string }[];
}

type Done = Partial<Pick<InjectedFault, "pids" | "activations">> & { detail: string; injected?: boolean };

/** How long somebody is looked for whom a fault could hit. */
const SOMEBODY_MS = 15_000;
const NOBODY: Done = { detail: "there was nobody to do it to", injected: false };

/** Faults of one of these go one after the other; those of different ones overlap. */
export const TARGETS: Record<Fault, "workers" | "sandbox" | "redis" | "producer" | "office" | "model" | "disk" | "queue"> = {
  worker_kill: "workers",
  worker_freeze: "workers",
  worker_restart: "workers",
  codex_kill: "sandbox",
  redis_kill: "redis",
  redis_freeze: "redis",
  producer_kill: "producer",
  mcp_restart: "office",
  model_429: "model",
  model_500: "model",
  model_cut: "model",
  model_hang: "model",
  disk_full: "disk",
  cancel_waiting: "queue",
  cancel_running: "queue",
};

/** Does one fault and undoes it; resolves when it is over. */
export async function inject(rig: Rig, injection: Injection): Promise<InjectedFault> {
  const from = Date.now();
  const done = await act(rig, injection).catch((error: unknown): Done => ({
    detail: `failed: ${String(error).slice(0, 200)}`,
    injected: false,
  }));
  return { ...injection, from, to: Date.now(), pids: [], activations: [], injected: true, ...done };
}

function act(rig: Rig, injection: Injection): Promise<Done> {
  const { fault, seconds } = injection;
  switch (fault) {
    case "worker_kill":
      return onWorker(rig, injection, (worker) => rig.fleet.replace(worker, "SIGKILL", seconds * 1_000));
    case "worker_restart":
      return onWorker(rig, injection, (worker) => rig.fleet.replace(worker, "SIGTERM", seconds * 1_000));
    case "worker_freeze":
      return onWorker(rig, injection, async (worker) => {
        worker.kill("SIGSTOP");
        await delay(seconds * 1_000);
        worker.kill("SIGCONT");
      });
    case "codex_kill":
      return killCodex(rig, injection);
    case "redis_kill":
      return killRedis(rig, injection);
    case "redis_freeze":
      return freezeRedis(rig, injection);
    case "producer_kill":
      return killProducer(rig, injection);
    case "mcp_restart":
      return rig.office.restart(seconds).then(() => ({ detail: `gone for ${seconds} s` }));
    case "model_429":
    case "model_500":
    case "model_cut":
    case "model_hang":
      return storm(rig, fault.slice("model_".length) as "429" | "500" | "cut" | "hang", seconds);
    case "disk_full":
      return fillDisk(rig, injection);
    case "cancel_waiting":
      return cancelWaiting(rig, injection);
    case "cancel_running":
      return cancelRunning(rig, injection);
    default:
      return fault satisfies never;
  }
}

async function onWorker({ fleet }: Rig, { pick, seconds }: Injection, act: (worker: Member) => Promise<void>): Promise<Done> {
  const worker = await chosen(() => fleet.workers(), pick);
  if (worker === null) return NOBODY;
  await act(worker);
  return { pids: [worker.pid], detail: `${worker.name} (process ${worker.pid}), ${seconds} s` };
}

async function killCodex({ watch }: Rig, { pick }: Injection): Promise<Done> {
  const found = await chosen(
    () => watch.alive().flatMap((record) => codexProcesses(record.mark).map((pid) => ({ pid, owner: record.owner }))),
    pick,
  );
  if (found === null || !sendSignal(found.pid, "SIGKILL")) return NOBODY;
  const { activation_id, attempt } = found.owner;
  return { activations: [activation_id], detail: `process ${found.pid} of ${activation_id}, attempt ${attempt}` };
}

function codexProcesses(mark: string): number[] {
  const all = new Set(markedProcesses(mark).flatMap(treeOf));
  return [...all].filter((pid) => readProc(pid, "comm")?.trim() === "codex");
}

async function killRedis({ redis }: Rig, { seconds }: Injection): Promise<Done> {
  await redis.kill9();
  await delay(seconds * 1_000);
  await redis.restart();
  return { detail: `dead for ${seconds} s` };
}

async function freezeRedis({ redis }: Rig, { seconds }: Injection): Promise<Done> {
  const { pid } = redis;
  process.kill(pid, "SIGSTOP");
  await delay(seconds * 1_000);
  process.kill(pid, "SIGCONT");
  return { detail: `frozen for ${seconds} s` };
}

async function killProducer({ fleet }: Rig, { seconds }: Injection): Promise<Done> {
  const producer = fleet.producer();
  if (producer === null) return NOBODY;
  await fleet.replace(producer, "SIGKILL", seconds * 1_000);
  return { detail: `${producer.name}, started again after ${seconds} s` };
}

async function storm({ model }: Rig, weather: "429" | "500" | "cut" | "hang", seconds: number): Promise<Done> {
  const struck = await model.storm(weather, seconds);
  return { detail: `${struck} model calls in ${seconds} s` };
}

async function fillDisk({ disk: made }: Rig, { seconds }: Injection): Promise<Done> {
  if (made.disk === null) return { detail: made.why, injected: false };
  made.disk.fill();
  await delay(seconds * 1_000);
  made.disk.empty();
  return { detail: `the artifact directory's file system was full for ${seconds} s` };
}

async function cancelWaiting(rig: Rig, { pick }: Injection): Promise<Done> {
  const job = await chosen(async () => rig.queues.activations.getJobs(["waiting", "prioritized", "delayed"], 0, 100), pick);
  return job === null ? NOBODY : cancel(rig, job.data.activation.activation_id);
}

async function cancelRunning(rig: Rig, { pick }: Injection): Promise<Done> {
  const record = await chosen(() => rig.watch.alive(), pick);
  return record === null ? NOBODY : cancel(rig, record.owner.activation_id);
}

async function cancel({ queues, cancels }: Rig, activationId: string): Promise<Done> {
  const asked = { activation_id: activationId, outcome: "unknown" };
  cancels.push(asked); // before: it may take effect although the answer is lost
  const { state, outcome } = await cancelActivation(queues, activationId, { by: "chaos", at: new Date().toISOString(), reason: "" });
  asked.outcome = outcome;
  return { activations: [activationId], detail: `${activationId}, ${state}: ${outcome}` };
}

/** The one that `pick` means, as soon as there is one. */
async function chosen<T>(candidates: () => readonly T[] | Promise<readonly T[]>, pick: number): Promise<T | null> {
  const until = Date.now() + SOMEBODY_MS;
  for (;;) {
    const found = await candidates();
    if (found.length > 0) return found[Math.floor(pick * found.length)]!;
    if (Date.now() > until) return null;
    await delay(100);
  }
}
