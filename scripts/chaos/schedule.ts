// SPDX-License-Identifier: Apache-2.0

/** What can be done to a run, in the order in which the table shows them. */
export const FAULTS = [
  "worker_kill",
  "worker_freeze",
  "worker_restart",
  "codex_kill",
  "redis_kill",
  "redis_freeze",
  "producer_kill",
  "mcp_restart",
  "model_429",
  "model_500",
  "model_cut",
  "model_hang",
  "disk_full",
  "cancel_waiting",
  "cancel_running",
] as const;
export type Fault = (typeof FAULTS)[number];

/** One fault that will be injected. */
export interface Injection {
  fault: Fault;
  /** How many activations have ended by then: not a time, so that a slow machine gets the same schedule. */
  after_results: number;
  /** How long it lasts; for a kill: until what was killed is started again. */
  seconds: number;
  /** In [0, 1): which one of those that it could hit. */
  pick: number;
}

/** Claims of the run last this long; what freezes a worker or Redis must outlast it. */
export const LOCK_MS = 5_000;

/** Least and most seconds. */
const LENGTHS: Record<Fault, readonly [number, number]> = {
  worker_kill: [0.1, 2],
  worker_freeze: [LOCK_MS / 1_000 + 2, LOCK_MS / 1_000 + 7],
  worker_restart: [0.1, 1],
  codex_kill: [0, 0],
  redis_kill: [0.5, LOCK_MS / 1_000 + 3],
  redis_freeze: [LOCK_MS / 1_000 + 1, LOCK_MS / 1_000 + 5],
  producer_kill: [0.1, 3],
  mcp_restart: [0.2, 3],
  model_429: [1, 3],
  model_500: [1, 5],
  model_cut: [1, 4],
  model_hang: [2, 8],
  disk_full: [2, 6],
  cancel_waiting: [0, 0],
  cancel_running: [0, 0],
};

/** One fault for so many tasks, but some in the shortest run. */
const TASKS_PER_FAULT = 3;
const [LEAST, MOST] = [6, 60];

/**
 * Which faults, when, on whom: the same for the same numbers. Every kind comes once before any comes twice; the first comes
 * when something has ended, the last while something is left. Pure.
 */
export function planFaults({ seed, tasks, only = FAULTS }: { seed: number; tasks: number; only?: readonly Fault[] }): Injection[] {
  const random = randomFrom(seed);
  const count = Math.min(MOST, Math.max(LEAST, Math.round(tasks / TASKS_PER_FAULT)));
  const kinds: Fault[] = [];
  while (kinds.length < count) kinds.push(...shuffled(only, random));
  return kinds.slice(0, count).map((fault, index) => {
    const [least, most] = LENGTHS[fault];
    return {
      fault,
      after_results: Math.max(1, Math.min(tasks - 1, Math.floor(((index + random()) / count) * 0.9 * tasks))),
      seconds: Math.round((least + random() * (most - least)) * 10) / 10,
      pick: random(),
    };
  });
}

/** Numbers in [0, 1) that follow from the seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
