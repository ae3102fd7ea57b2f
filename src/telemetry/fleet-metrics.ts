// SPDX-License-Identifier: Apache-2.0
import { Counter, Gauge, type Registry } from "prom-client";
import type { FleetReading } from "../queue/fleet-reading.ts";
import { OTHER } from "./closed.ts";
import { END_LABELS } from "./end-labels.ts";

/** Several scrapers, or one that is impatient, ask Redis once. */
const FRESH_MS = 3_000;

/**
 * What is known of the whole queue, read from Redis when somebody scrapes: every API process answers the same, so one of them is to be
 * looked at, or the greatest of all. `queues` are told apart by name, and `modelServer` (an origin) as "configured"; producers may name
 * any number of others, which are added up as "other".
 */
export function fleetMetrics(
  registry: Registry,
  { read, queues, modelServer }: { read: () => Promise<FleetReading>; queues: readonly string[]; modelServer: string },
): { refresh(): Promise<void> } {
  const registers = [registry];
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> =>
    new Gauge({ name: `rollcall_fleet_${name}`, help: `${help} Fleet-wide.`, labelNames, registers });

  const up = new Gauge({
    name: "rollcall_redis_up",
    help: "1 when Redis answered this scrape; without it there are no fleet-wide numbers.",
    registers,
  });
  const activations = gauge(
    "activations",
    "Activations that have not ended: waiting for a worker, parked by their run, model (held back by a busy model server), delayed (until their next attempt, or a worker that can run them), running.",
    ["state"],
  );
  const endsPending = gauge("ends_pending", "Ends that are about to be recorded and delivered.");
  const oldest = gauge(
    "oldest_waiting_seconds",
    "Since the activation that waits longest at the front of a line was enqueued; 0: none waits.",
  );
  const runs = gauge(
    "runs_held",
    "Runs that hold work back, by why: pause (somebody did), breaker (it did itself), limit (its own limit, or its budget).",
    ["by"],
  );
  const workers = gauge("workers", "Live workers: taking, or held_back for want of room.", ["state"]);
  const slots = gauge("worker_slots", "Sessions at once: total of the workers that take some, and free.", ["state"]);
  const results = gauge("results", "Results in their queues: unread, or claimed and not acknowledged.", ["queue", "state"]);
  const oldestResult = gauge("oldest_unread_result_seconds", "Age of the oldest unread result; 0: none.", ["queue"]);
  const sessions = gauge(
    "model_sessions",
    "Sessions at model servers: running, or waiting. configured: the server of the settings; other: all others, as far as sessions wait for them or they refuse some.",
    ["server", "state"],
  );
  const limit = gauge("model_session_limit", "Sessions that a model server may have at once; absent: any number.", ["server"]);
  const refusing = gauge(
    "model_servers_refusing",
    "Model servers that have refused sessions for a minute and served none, while some wait.",
  );
  const ended = new Counter({
    name: "rollcall_fleet_activations_ended_total",
    help: "Activations that ended, since this Redis was first used. Fleet-wide.",
    labelNames: END_LABELS,
    registers,
  });
  const all = [activations, endsPending, oldest, runs, workers, slots, results, oldestResult, sessions, limit, refusing, ended];

  function show(reading: FleetReading): void {
    for (const metric of all) metric.reset();
    for (const [state, count] of Object.entries(reading.activations)) activations.set({ state }, count);
    endsPending.set(reading.endsPending);
    oldest.set(reading.oldestWaitingSeconds);
    for (const [by, count] of Object.entries(reading.runsHeld)) runs.set({ by }, count);
    workers.set({ state: "taking" }, reading.workers.taking);
    workers.set({ state: "held_back" }, reading.workers.heldBack);
    slots.set({ state: "total" }, reading.workers.slots);
    slots.set({ state: "free" }, Math.max(0, reading.workers.slots - reading.activations.running));
    for (const queue of [...queues, OTHER]) {
      for (const state of ["unread", "claimed"]) results.set({ queue, state }, 0);
      oldestResult.set({ queue }, 0);
    }
    const oldestOf = new Map<string, number>();
    for (const { queue: name, unread, claimed, oldest_seconds } of reading.results) {
      const queue = queues.includes(name) ? name : OTHER;
      results.inc({ queue, state: "unread" }, unread);
      results.inc({ queue, state: "claimed" }, claimed);
      oldestOf.set(queue, Math.max(oldestOf.get(queue) ?? 0, oldest_seconds ?? 0));
    }
    for (const [queue, seconds] of oldestOf) oldestResult.set({ queue }, seconds);
    for (const { server: origin, running, parked, limit: most } of reading.models) {
      const server = origin === modelServer ? "configured" : OTHER;
      sessions.inc({ server, state: "running" }, running);
      sessions.inc({ server, state: "waiting" }, parked);
      if (most !== null) limit.inc({ server }, most);
    }
    refusing.set(reading.modelsRefusing);
    for (const { labels, count } of reading.ended) ended.inc(labels, count);
  }

  let last: { at: number; shown: Promise<void> } | null = null;
  async function readAndShow(): Promise<void> {
    try {
      show(await read());
      up.set(1);
    } catch {
      for (const metric of all) metric.reset(); // rather nothing than what was
      for (const metric of [endsPending, oldest, refusing]) metric.remove();
      up.set(0);
    }
  }
  return {
    refresh() {
      if (last === null || performance.now() - last.at > FRESH_MS) last = { at: performance.now(), shown: readAndShow() };
      return last.shown;
    },
  };
}
