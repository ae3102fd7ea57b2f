// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { atPercent, median } from "./api-load/percentiles.ts";
import { runRound, type Round } from "./api-load/round.ts";

const HELP = `npm run bench:api -- [options]

Load on the queue API: a real Redis, and a process of the API as rollcall serve starts it. Clients queue activations over
HTTP while readers follow events, once with all of them reading and once with some that stop. The floor is the same batches
added by the library. No worker runs: the bench writes events by the function that workers use, and the activations end by
being cancelled over the API, which records each end. Ends with 1 when anything was lost or came twice.

  --tasks N       activations (default 10000)
  --batch N       activations in one request (100)
  --clients N     clients, one connection each (4)
  --readers N     readers of events (50)
  --stopped N     of them stop after the first bytes (10)
  --flood-mb N    MB of events for each reader that stops (12)
  --ends N        activations that are cancelled in the end, and their ends waited for (all)
  --runs N        how often all of it; medians are printed (1)
  --json          print all figures of each round as a line of JSON
`;
const { values: flags } = parseArgs({
  options: {
    tasks: { type: "string", default: "10000" },
    batch: { type: "string", default: "100" },
    clients: { type: "string", default: "4" },
    readers: { type: "string", default: "50" },
    stopped: { type: "string", default: "10" },
    "flood-mb": { type: "string", default: "12" },
    ends: { type: "string" },
    runs: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130)); // takes the API process along

if (flags.help) process.stdout.write(HELP);
else await bench();

async function bench(): Promise<void> {
  const [tasks, batch, clients, readers, stopped, floodMb, runs] = [
    flags.tasks,
    flags.batch,
    flags.clients,
    flags.readers,
    flags.stopped,
    flags["flood-mb"],
    flags.runs,
  ].map(Number) as [number, number, number, number, number, number, number];
  const ends = Number(flags.ends ?? tasks);
  if (!(ends >= readers && ends <= tasks)) throw new Error("--ends must be at least --readers, and at most --tasks");
  if (!(batch >= readers && tasks >= batch && readers >= 2 * stopped))
    throw new Error("--tasks must be at least --batch, --batch at least --readers, --readers at least twice --stopped");
  const rounds: { run: number; stopped: number; round: Round }[] = [];
  for (let run = 1; run <= runs; run++) {
    for (const stop of [false, true]) {
      const title = `run ${run}, ${stop ? stopped : 0} stopped`;
      const say = (text: string): void => void process.stderr.write(`${title}: ${text}\n`);
      const entry = fileURLToPath(new URL("../workers/api.js", import.meta.url));
      const round = await runRound({ entry, tasks, batch, clients, readers, flooded: stopped, floodMb, stop, ends, say });
      for (const fault of round.faults) say(`FAULT ${fault}`);
      if (round.faults.length > 0) process.exitCode = 1;
      rounds.push({ run, stopped: stop ? stopped : 0, round });
      if (flags.json) console.log(JSON.stringify(rounds.at(-1)));
    }
  }
  if (flags.json) return;
  const of = (count: number, figure: (round: Round) => number): string =>
    median(rounds.filter((each) => each.stopped === count).map(({ round }) => figure(round))).toFixed(1);
  const percents = (ms: readonly number[]): number[] => [50, 95, 99].map((percent) => atPercent(ms, percent));
  const figures: [name: string, (round: Round) => number][] = [
    ["activations/s by the library (floor)", ({ floor }) => floor.per_second],
    ["activations/s over HTTP", ({ enqueue }) => enqueue.per_second],
    ...[50, 95, 99].map((percent, index): [string, (round: Round) => number] => [
      `batch by the library, p${percent} ms (floor)`,
      ({ floor }) => percents(floor.ms)[index]!,
    ]),
    ...[50, 95, 99].map((percent, index): [string, (round: Round) => number] => [
      `batch over HTTP, p${percent} ms`,
      ({ enqueue }) => percents(enqueue.ms)[index]!,
    ]),
    ["CPU of 1,000 by the library, s (floor)", ({ cpu_seconds }) => cpu_seconds.floor],
    ["CPU of the API process for 1,000 and for the readers, s", ({ cpu_seconds }) => cpu_seconds.api],
    ["GET /healthz before the load, p50 ms (floor)", ({ healthz_ms }) => atPercent(healthz_ms, 50)],
    ["an event to its reader, p50 ms", ({ delivery_ms }) => atPercent(delivery_ms, 50)],
    ["an event to its reader, p99 ms", ({ delivery_ms }) => atPercent(delivery_ms, 99)],
    ["state of 1,000, p50 ms", ({ state }) => atPercent(state.ms, 50)],
    [`cancelling ${batch}, p50 ms`, ({ cancel }) => atPercent(cancel.ms, 50)],
    ["cancelled and recorded, activations/s", ({ ends_seconds }) => ends / ends_seconds],
    ["memory of the API process before, MB", ({ memory_mb }) => memory_mb.before],
    ["memory, peak, MB", ({ memory_mb }) => memory_mb.peak],
    ["memory after, MB", ({ memory_mb }) => memory_mb.after],
    ["read ahead for a stopped reader, at most, MB", ({ read_ahead_mb }) => read_ahead_mb.most],
    ["requests answered 429 or 503", ({ asked_again }) => asked_again],
    ["readers that had to connect again", ({ reconnected }) => reconnected.length],
    ["lost, or twice", ({ faults }) => faults.length],
  ];
  const table = new Table({ head: ["", "0 stopped", `${stopped} stopped`] });
  for (const [name, figure] of figures) table.push([name, of(0, figure), of(stopped, figure)]);
  console.log(
    `${tasks} activations in batches of ${batch} by ${clients} clients, ${readers} readers; median of ${runs} run(s), Node ${process.versions.node}`,
  );
  console.log(table.toString());
}
