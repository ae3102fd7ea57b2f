// SPDX-License-Identifier: Apache-2.0
import { link, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DelayedError, Worker, type Job } from "bullmq";
// In a program of your own: from "rollcall".
import { openArtifactStore, wholeResult, type ActivationResult } from "../src/index.ts";

/**
 * A consumer: an ordinary BullMQ worker of a results queue. For each result it leaves one file, and says so; what comes a second
 * time is known by its id and left alone. Serves until SIGTERM or SIGINT.
 */
const { values: flags } = parseArgs({ options: { queue: { type: "string" }, done: { type: "string", default: "done" } } });
const { REDIS_URL, ROLLCALL_ARTIFACTS } = process.env;
if (flags.queue === undefined || REDIS_URL === undefined || ROLLCALL_ARTIFACTS === undefined) {
  console.error("usage: REDIS_URL=... ROLLCALL_ARTIFACTS=... consumer --queue NAME [--done DIR]");
  process.exit(2);
}
const AGAIN_MS = 10_000;
await mkdir(flags.done, { recursive: true });
const store = await openArtifactStore(ROLLCALL_ARTIFACTS);

const worker = new Worker<ActivationResult>(flags.queue, handle, {
  connection: { url: REDIS_URL },
  prefix: "{rollcall}",
  concurrency: 4,
  // A consumer that dies leaves its results to others. BullMQ would do that once, and then call the result failed.
  maxStalledCount: 1_000_000,
});
worker.on("error", (error) => console.error(error.message));
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void worker.close());
console.log(`consuming ${flags.queue}`);

/** Returning acknowledges. */
async function handle(job: Job<ActivationResult>, token?: string): Promise<void> {
  try {
    const result = await wholeResult(store, job.data);
    // The activation's id, with its generation: the same at each delivery.
    const isFirst = await record(job.id!, result);
    console.log(`${isFirst ? "handled" : "known already"} ${job.id} ${result.status}`);
  } catch (error) {
    // The store is away, the disk is full: it comes again. A job that throws anything else has failed, and never does.
    console.error(`${job.id} comes again: ${error instanceof Error ? error.message : String(error)}`);
    await job.moveToDelayed(Date.now() + AGAIN_MS, token);
    throw new DelayedError();
  }
}

/**
 * What this consumer does for a result, and the note that it is done, in one step: a file of its id, whole and on disk or not
 * there at all. False: it was there. With a database it is one transaction, with the id as a primary key.
 */
async function record(id: string, result: ActivationResult): Promise<boolean> {
  const { status, usage, artifacts, ended_at } = result;
  const files = artifacts.filter(({ kind }) => kind !== "evidence").map(({ uri }) => uri);
  const temporary = join(flags.done, `.${id}.${process.pid}`);
  try {
    await writeFile(temporary, JSON.stringify({ status, ended_at, tokens: usage?.total_tokens ?? null, files }), { flush: true });
    await link(temporary, join(flags.done, `${id}.json`)); // rename would replace what is there
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
}
