// SPDX-License-Identifier: Apache-2.0
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import type { JobStatus } from "@bull-board/api/typings/app";
import { Job, type Queue } from "bullmq";
import type { ArtifactStore } from "../artifacts/types.ts";
import { activationIdSchema } from "../contract/identity.ts";
import { ACTIVATIONS, STEPS } from "../queue/names.ts";
import { readProgress } from "../queue/progress.ts";
import type { Queues } from "../queue/queues.ts";
import { liveWorkers } from "../queue/worker-lease.ts";
import { activationOfStep } from "../resources/record.ts";
import { jobDetails, jobFacts, type JobFacts } from "./job-facts.ts";
import { jobView, type JobView } from "./job-view.ts";

/** So many jobs are on one page of a queue, whatever the page asks for. */
const MOST_JOBS = 100;
const MOST_EVENTS = 200;

/**
 * One queue for Bull Board, to look at only. Bull Board's own adapter loads whole jobs, which may have megabytes: this one reads
 * what is short, and shows an activation where Bull Board knows data, progress and logs.
 */
export class BoardQueue extends BullMQAdapter {
  readonly #ports: { queues: Queues; store: ArtifactStore };
  readonly #queue: Queue;

  constructor(ports: { queues: Queues; store: ArtifactStore }, queue: Queue, description: string) {
    super(queue, {
      readOnlyMode: true,
      allowRetries: false,
      description,
      externalJobUrl: ({ data }) => ({ displayText: "Open the activation", href: (data as JobView["data"]).pages.activation }),
    });
    this.#ports = ports;
    this.#queue = queue;
  }

  override async getJobs(statuses: JobStatus[], start = 0, end = MOST_JOBS - 1): Promise<Job[]> {
    if (!Number.isSafeInteger(start)) return []; // more than Redis counts
    const last = Math.min(end, start + MOST_JOBS - 1);
    const ids = await this.#queue.getRanges(statuses as Parameters<Queue["getRanges"]>[0], start, last);
    const facts = await jobFacts(this.#ports.queues, this.#queue.name, ids.slice(0, MOST_JOBS));
    return facts.map((each) => this.#job(each, jobView(each)));
  }

  override async getJob(id: string): Promise<Job | undefined> {
    const facts = await this.#facts(id);
    if (facts === null) return undefined;
    return this.#job(facts, jobView(facts, await jobDetails(this.#ports, this.#queue.name, facts)));
  }

  /** What its session does, as it tells it. */
  override async getJobLogs(id: string): Promise<string[]> {
    const facts = await this.#facts(id);
    if (facts === null) return [];
    const events = await readProgress(this.#ports.queues.redis, facts.state.activation_id, MOST_EVENTS);
    return events.map(({ at, attempt, stage, note, counts }) => {
      const so_far =
        counts === undefined ? "" : ` (turns ${counts.turns}, tool calls ${counts.tool_calls}, tokens ${counts.tokens ?? "?"})`;
      return `${at} attempt ${attempt} ${stage}${note === undefined ? "" : `: ${note}`}${so_far}`;
    });
  }

  /** Those whose leases are in force: names of connections would tell nothing of other hosts' processes. */
  override async getWorkers() {
    if (this.#queue.name !== ACTIVATIONS) return null;
    const workers = await liveWorkers(this.#ports.queues);
    return workers.map(({ worker_id, host, pid, held_back }) => ({
      id: worker_id,
      name: held_back === null ? worker_id : `${worker_id} (${held_back})`,
      addr: `${host}, process ${pid}`,
      age: 0,
    }));
  }

  /** The tree of a job would be made of whole jobs; ours are pairs, and each names the other's activation. */
  override async getFlowProducer(): Promise<null> {
    return null;
  }

  async #facts(id: string): Promise<JobFacts | null> {
    const whose = this.#queue.name === STEPS ? activationOfStep(id) : id;
    if (!activationIdSchema.safeParse(whose).success) return null; // others may name keys of the queue
    return (await jobFacts(this.#ports.queues, this.#queue.name, [id]))[0] ?? null;
  }

  #job({ id, state, fields }: JobFacts, view: JobView): Job {
    const job = new Job(this.#queue, view.title, view.data, {}, id);
    job.timestamp = Number(fields.timestamp);
    if (fields.processedOn !== undefined) job.processedOn = Number(fields.processedOn);
    if (fields.finishedOn !== undefined) job.finishedOn = Number(fields.finishedOn);
    if (fields.pb !== undefined) job.processedBy = fields.pb;
    job.delay = Number(fields.delay ?? 0);
    job.priority = Number(fields.priority ?? 0);
    job.attemptsMade = state.charged;
    job.progress = view.progress;
    job.failedReason = view.failedReason ?? "";
    job.stacktrace = [];
    return job;
  }
}
