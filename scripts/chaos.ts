// SPDX-License-Identifier: Apache-2.0
// A real run under a seeded schedule of faults, and an oracle over everything that it left. `--break` takes one guard out of
// a copy of the program, to show that the oracle would notice.
import { Command, InvalidArgumentError } from "commander";
import { oneOf, wholeNumber } from "../src/cli/options.ts";
import { GUARD_NAMES, GUARDS, type GuardName } from "./chaos/guards.ts";
import { judge } from "./chaos/oracle.ts";
import { reportText, scheduleTable } from "./chaos/report.ts";
import { runChaos } from "./chaos/run.ts";
import { FAULTS, planFaults, type Fault } from "./chaos/schedule.ts";

interface Flags {
  tasks: number;
  seed: number;
  workers: number;
  concurrency: number;
  only?: Fault[];
  break?: GuardName;
  keep?: string;
  json?: true;
}

function faultList(text: string): Fault[] {
  return text.split(",").map((name) => {
    const fault = FAULTS.find((each) => each === name);
    if (fault === undefined) throw new InvalidArgumentError(`${name} is none of ${FAULTS.join(", ")}`);
    return fault;
  });
}

const flags = new Command("chaos")
  .description("Run tasks under faults and check what was promised; exit 1 on any breach.")
  .option("--tasks <n>", "how many", wholeNumber(4), 220)
  .option(
    "--seed <n>",
    "of the schedule and the tasks; a new one each time unless given",
    wholeNumber(0),
    Math.floor(Math.random() * 1_000_000_000),
  )
  .option("--workers <n>", "worker processes", wholeNumber(1), 3)
  .option("--concurrency <n>", "sessions at once in each", wholeNumber(1), 3)
  .option("--only <faults>", `some of ${FAULTS.join(",")}`, faultList)
  .option("--break <guard>", `take one guard out of a copy of the program: ${GUARD_NAMES.join(", ")}`, oneOf(GUARD_NAMES))
  .option("--keep <dir>", "keep everything there")
  .option("--json", "the whole report as JSON on stdout")
  .parse()
  .opts<Flags>();

const say = (line: string): void => void process.stderr.write(`chaos: ${line}\n`);
const only = flags.only ?? (flags.break === undefined ? FAULTS : GUARDS[flags.break].faults);
const { tasks, seed, workers, concurrency } = flags;
const schedule = planFaults({ seed, tasks, only });
say(
  `${tasks} tasks, seed ${seed}, ${workers} workers with ${concurrency} sessions each${flags.break === undefined ? "" : `, without the guard ${flags.break}`}`,
);
process.stderr.write(`${scheduleTable(schedule)}\n`);
const facts = await runChaos({ tasks, seed, workers, concurrency, schedule, guard: flags.break ?? null, keep: flags.keep ?? null, say });
const verdict = judge(facts);
if (flags.json === true)
  console.log(
    JSON.stringify({
      seed,
      tasks,
      schedule,
      faults: facts.faults,
      stalls: facts.stalls,
      unexpected_ends: facts.unexpected_ends,
      ...verdict,
    }),
  );
else console.log(reportText(facts, verdict));
process.exitCode = verdict.ok ? 0 : 1;
