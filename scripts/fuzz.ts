// SPDX-License-Identifier: Apache-2.0
// Looks for faults of the redactor and of the event reader for a given time: the properties that the tests hold for some
// hundred cases, with ever new ones. `--plant` puts a fault in, to show that the search would find it.
import { Command } from "commander";
import * as fc from "fast-check";
import { oneOf, wholeNumber } from "../src/cli/options.ts";
import { readStdout } from "../src/codex/stdout.ts";
import { createRedactStream, redactText } from "../src/redact/index.ts";
import { foldsToValidFacts, readsEachLine, storesWhatItRead, type Reader } from "../test/codex/reader-properties.ts";
import {
  eitherEnd,
  foreignBytes,
  harmless,
  streamed,
  survivesNoCut,
  survivesNowhere,
  type Redactor,
} from "../test/redact/redactor-properties.ts";

const PLANTS = ["redactor", "stream", "reader"] as const;
type Plant = (typeof PLANTS)[number];
/** Cases of one property before it is the next one's turn. */
const BATCH = 100;

interface Flags {
  seconds: number;
  seed: number;
  only?: string;
  path?: string;
  plant?: Plant;
}

function properties(plant: Plant | undefined): Record<string, fc.IRawProperty<unknown>> {
  const redactor: Redactor = {
    // Does not look behind the 200th character.
    redactText: plant === "redactor" ? (set, text, options) => redactText(set, text.slice(0, 200), options) + text.slice(200) : redactText,
    // Takes the end of the stream for a cut.
    createRedactStream: plant === "stream" ? (set) => createRedactStream(set, { endsAtCut: true }) : createRedactStream,
  };
  const reader: Reader = { readStdout: plant === "reader" ? withoutTornLine : readStdout };
  const all = {
    survivesNowhere,
    survivesNoCut,
    eitherEnd,
    harmless,
    streamed,
    foreignBytes,
    readsEachLine,
    foldsToValidFacts,
    storesWhatItRead,
  };
  const subject = { ...redactor, ...reader };
  return Object.fromEntries(Object.entries(all).map(([name, make]) => [name, make(subject) as fc.IRawProperty<unknown>]));
}

/** Forgets a last line that has no line break. */
async function* withoutTornLine(
  chunks: AsyncIterable<Uint8Array>,
  options: Parameters<typeof readStdout>[1],
): ReturnType<typeof readStdout> {
  async function* cutOff(): AsyncGenerator<Uint8Array> {
    const parts: Uint8Array[] = [];
    for await (const chunk of chunks) parts.push(chunk);
    const whole = Buffer.concat(parts);
    yield whole.subarray(0, whole.lastIndexOf(0x0a) + 1);
  }
  yield* readStdout(cutOff(), options);
}

async function fuzz({ seconds, seed, only, path, plant }: Flags): Promise<number> {
  const found = Object.entries(properties(plant)).filter(([name]) => only === undefined || name === only);
  if (found.length === 0) throw new Error(`no property is called ${only}`);
  const cases = new Map(found.map(([name]) => [name, 0]));
  const started = performance.now();
  const elapsed = (): number => (performance.now() - started) / 1000;
  console.log(`fuzz: ${seconds} s, seed ${seed}, properties: ${found.map(([name]) => name).join(", ")}`);
  let faults = 0;
  for (let round = 0; faults === 0 && (round === 0 || elapsed() < seconds); round++) {
    for (const [name, property] of found) {
      const roundSeed = seed + round;
      const run = await fc.check(property, { seed: roundSeed, numRuns: BATCH, ...(path === undefined ? {} : { path }) });
      cases.set(name, cases.get(name)! + run.numRuns);
      if (!run.failed) continue;
      faults++;
      const planted = plant === undefined ? "" : ` --plant ${plant}`;
      console.log(`fuzz: FAULT in ${name}\n${fc.defaultReportMessage(run) ?? ""}\n${String(run.errorInstance)}`);
      console.log(
        `fuzz: again with: npm run fuzz -- --seconds 0 --only ${name} --seed ${roundSeed} --path ${run.counterexamplePath}${planted}`,
      );
    }
    if (path !== undefined) break;
  }
  const total = [...cases.values()].reduce((sum, count) => sum + count, 0);
  console.log(
    `fuzz: ${total} cases in ${elapsed().toFixed(1)} s (${[...cases].map(([name, count]) => `${name} ${count}`).join(", ")}); faults: ${faults}`,
  );
  return faults === 0 ? 0 : 1;
}

const flags = new Command("fuzz")
  .description("Look for faults of the redactor and the event reader; exit 1 when one is found.")
  .option("--seconds <n>", "how long, in whole rounds", wholeNumber(0), 60)
  .option("--seed <n>", "where to begin; a new one each time unless given", wholeNumber(0), Math.floor(Math.random() * 1_000_000_000))
  .option("--only <property>", "one property")
  .option("--path <path>", "one case of it, as a fault's report says")
  .option("--plant <fault>", `put a fault in: ${PLANTS.join(", ")}`, oneOf(PLANTS))
  .parse()
  .opts<Flags>();
process.exitCode = await fuzz(flags);
