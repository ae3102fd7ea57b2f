// SPDX-License-Identifier: Apache-2.0
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { InjectedFault, PhysicalRun, RunFacts, StoredEnd } from "../../scripts/chaos/facts.ts";
import { breakGuard, GUARD_NAMES, GUARDS } from "../../scripts/chaos/guards.ts";
import { findLeftovers } from "../../scripts/chaos/leftovers.ts";
import { judge } from "../../scripts/chaos/oracle.ts";
import { FAULTS, planFaults } from "../../scripts/chaos/schedule.ts";
import { processIdentity } from "../../src/host/process.ts";
import { DEFAULT_RUNTIME_ROOT } from "../../src/sandbox/bubblewrap.ts";
import { allPids } from "../../src/sandbox/processes.ts";
import { tempDir } from "../support/temp-dir.ts";

const WORKER = 4711;

function run(facts: Partial<PhysicalRun> = {}): PhysicalRun {
  return {
    activation_id: "act-t1",
    attempt: 0,
    worker_pid: WORKER,
    began_at: 1_000,
    sandboxes: 1,
    threads: ["thread-0"],
    saved: null,
    ...facts,
  };
}

const SAVED = { status: "completed", failure_kind: null, cause_code: null, terminal: true, charged: true, ended_at: 8_000 } as const;
const GIVEN_UP = {
  ...SAVED,
  status: "failed",
  failure_kind: "shutdown",
  cause_code: "lock_lost",
  terminal: false,
  charged: false,
} as const;
const FAILED = { ...SAVED, status: "failed", failure_kind: "provider_unavailable", cause_code: "turn_failed", terminal: false } as const;

function end(facts: Partial<StoredEnd> = {}): StoredEnd {
  return {
    activation_id: "act-t1",
    task_id: "t1",
    generation: 0,
    status: "completed",
    cause: "",
    capture_key: "t1",
    attempt: 0,
    attempts: [0],
    finish_calls: 1,
    committed_at: 9_000,
    changed: false,
    ...facts,
  };
}

function fault(kind: InjectedFault["fault"], facts: Partial<InjectedFault> = {}): InjectedFault {
  return {
    fault: kind,
    after_results: 0,
    seconds: 1,
    pick: 0,
    from: 5_000,
    to: 6_000,
    pids: [],
    activations: [],
    detail: "",
    injected: true,
    ...facts,
  };
}

/** A run in which every promise was kept. */
function kept(changes: Partial<RunFacts> = {}): RunFacts {
  return {
    tasks: [{ task_id: "t1", kind: "works", max_attempts: 3 }],
    lines: [{ task_id: "t1", capture_key: "t1", status: "completed" }],
    ends: [end()],
    delivered: ["act-t1"],
    runs: [run({ saved: SAVED })],
    finishes: [{ task_id: "t1", thread_id: "thread-0", at: 7_000 }],
    faults: [],
    cancels: [],
    stalls: [],
    unexpected_ends: [],
    stuck: null,
    left: { processes: [], directories: [], records: [], sockets: [], mounts: [], locks: [], cgroups: [], temporary: [] },
    secrets: { found: [], missed_controls: [] },
    ...changes,
  };
}

/** The same, ended by a second attempt after `first`. */
function repeated(first: Partial<PhysicalRun>, changes: Partial<RunFacts> = {}): RunFacts {
  return kept({
    lines: [{ task_id: "t1", capture_key: "t1-a1", status: "completed" }],
    ends: [end({ capture_key: "t1-a1", attempt: 1, attempts: [0, 1], committed_at: 20_000 })],
    runs: [run(first), run({ attempt: 1, began_at: 12_000, worker_pid: 1, threads: ["thread-1"], saved: { ...SAVED, ended_at: 19_000 } })],
    finishes: [{ task_id: "t1", thread_id: "thread-1", at: 18_000 }],
    ...changes,
  });
}

const breaches = (facts: RunFacts): string[] => judge(facts).checks.flatMap((check) => check.breaches);

it("finds nothing where every promise was kept", () => {
  expect(breaches(kept())).toEqual([]);
  expect(judge(kept()).ok).toBe(true);
});

const { left, secrets } = kept();
it.each<[string, RunFacts, RegExp]>([
  ["a lost line", kept({ lines: [] }), /t1 is lost/],
  ["a line too many", kept({ lines: [...kept().lines, ...kept().lines] }), /t1 is there 2 times/],
  ["a lost result", kept({ ends: [], delivered: [] }), /t1 is lost/],
  ["a result of nobody's", kept({ ends: [end(), end({ activation_id: "act-x", task_id: "x" })] }), /x is not wanted/],
  ["a second generation", kept({ ends: [end({ generation: 1 })] }), /has generation 1/],
  ["a result that was replaced", kept({ ends: [end({ changed: true })] }), /was replaced after it was committed/],
  ["a result that was not delivered", kept({ delivered: [] }), /act-t1 is lost/],
  ["a results queue that cannot be read", kept({ delivered: null }), /could not be read/],
  [
    "a line that differs from the store",
    kept({ lines: [{ task_id: "t1", capture_key: "t1-a1", status: "completed" }] }),
    /by t1-a1 in results.jsonl/,
  ],
  [
    "an end that nothing explains",
    kept({ ends: [end({ status: "failed", cause: "kill_shaped/killed_by_signal" })] }),
    /t1 \(works\) ended failed/,
  ],
  ["a cancelled end that nobody asked for", kept({ ends: [end({ status: "cancelled" })] }), /ended cancelled/],
  ["a finish call that nobody served", kept({ finishes: [] }), /tells of 1 finish calls of attempt 0, the tool server of 0/],
  ["a finish call of another session", kept({ finishes: [{ task_id: "t1", thread_id: "other", at: 7_000 }] }), /the tool server of 0/],
  ["a finish call that is not told of", kept({ ends: [end({ finish_calls: 0 })] }), /tells of 0 finish calls, the tool server of 1/],
  ["completed without a finish call", kept({ ends: [end({ finish_calls: 0 })], finishes: [] }), /completed without a finish call/],
  [
    "a finish call after the commit",
    kept({ finishes: [...kept().finishes, { task_id: "t1", thread_id: "late", at: 15_000 }] }),
    /finish was called 6000 ms after/,
  ],
  [
    "a Codex run after the commit",
    kept({ runs: [...kept().runs, run({ attempt: 1, began_at: 15_000, threads: [] })], faults: [fault("redis_kill")] }),
    /attempt 1 began 6000 ms after the commit/,
  ],
  [
    "an attempt's number used twice",
    kept({ runs: [run({ saved: SAVED, threads: ["thread-0", "thread-9"] })] }),
    /2 Codex sessions in 1 sandboxes ran as attempt 0/,
  ],
  ["two sandboxes of one attempt", kept({ runs: [run({ saved: SAVED, sandboxes: 2 })] }), /in 2 sandboxes ran as attempt 0/],
  ["a failure of which nobody knows why", repeated({ saved: { ...FAILED, cause_code: "unknown" } }), /nothing explains attempt 1/],
  [
    "a result that leaves an attempt out",
    repeated({ saved: FAILED }, { ends: [end({ capture_key: "t1-a1", attempt: 1, attempts: [1], committed_at: 20_000 })] }),
    /does not tell of attempt 0/,
  ],
  ["too many charged attempts", kept({ tasks: [{ task_id: "t1", kind: "works", max_attempts: 0 }] }), /1 attempts were charged, 0 allowed/],
  ["a repeat without a reason", repeated({}), /nothing explains attempt 1/],
  [
    "a repeat whose fault hit another worker",
    repeated({}, { faults: [fault("worker_kill", { pids: [1] })] }),
    /nothing explains attempt 1/,
  ],
  [
    "a repeat long after the fault",
    repeated({ began_at: 30_000, saved: { ...GIVEN_UP, ended_at: 40_000 } }, { faults: [fault("redis_kill")] }),
    /nothing explains/,
  ],
  [
    "a claim given up though its worker was only restarted",
    repeated({ saved: GIVEN_UP }, { faults: [fault("worker_restart", { pids: [WORKER] })] }),
    /nothing explains/,
  ],
  [
    "a run after it was cancelled in time",
    kept({ cancels: [{ activation_id: "act-t1", outcome: "done" }] }),
    /was cancelled before it began, and ended completed/,
  ],
  ...Object.keys(left).map((kind): [string, RunFacts, RegExp] => [
    `left ${kind}`,
    kept({ left: { ...left, [kind]: ["one"] } }),
    new RegExp(`${kind}: one`),
  ]),
  ["a byte of a secret", kept({ secrets: { ...secrets, found: ["/out/x"] } }), /\/out\/x/],
  ["a search that is blind", kept({ secrets: { ...secrets, missed_controls: ["canary"] } }), /does not find: canary/],
  [
    "a worker that ended by itself",
    kept({ unexpected_ends: [{ who: "worker-1", at: 0, detail: "exit code 70" }] }),
    /worker-1 ended by itself/,
  ],
  ["a run that got stuck", kept({ stuck: "nothing ended" }), /nothing ended/],
])("finds %s", (_what, facts, breach) => {
  expect(breaches(facts)).toEqual(expect.arrayContaining([expect.stringMatching(breach)]));
  expect(judge(facts).ok).toBe(false);
});

it.each<[string, RunFacts, RegExp]>([
  ["a saved failure", repeated({ saved: FAILED }), /failed: provider_unavailable\/turn_failed/],
  ["its worker's death", repeated({}, { faults: [fault("worker_kill", { pids: [WORKER] })] }), /left nothing: worker_kill/],
  [
    "a freeze of its worker",
    repeated({ saved: { ...GIVEN_UP, ended_at: 13_000 } }, { faults: [fault("worker_freeze", { pids: [WORKER] })] }),
    /lock_lost\): worker_freeze/,
  ],
  ["Redis away", repeated({}, { faults: [fault("redis_freeze")] }), /redis_freeze/],
  ["a full disk", repeated({ saved: SAVED }, { faults: [fault("disk_full")] }), /before it could be committed: disk_full/],
  [
    "a freeze of its worker between the end of Codex and the commit",
    repeated({ saved: SAVED }, { faults: [fault("worker_freeze", { pids: [WORKER], from: 9_000, to: 11_000 })] }),
    /before it could be committed: worker_freeze/,
  ],
  [
    "a rolling restart",
    repeated({ saved: { ...GIVEN_UP, cause_code: "shutdown" } }, { faults: [fault("worker_restart", { pids: [WORKER] })] }),
    /worker_restart/,
  ],
  ["a machine that stood still", repeated({}, { stalls: [{ from: 5_000, to: 9_000 }] }), /stood still for 4.0 s/],
])("takes %s as a reason for another attempt", (_what, facts, reason) => {
  expect(breaches(facts)).toEqual([]);
  expect(judge(facts).repeats).toEqual([expect.objectContaining({ attempt: 1, reason: expect.stringMatching(reason) as string })]);
});

it.runIf(process.getuid?.() === 0)(
  "sees the locks on uids that workers of the run left, and halves of them, though no sandbox ever came of them",
  async () => {
    const uids = join(DEFAULT_RUNTIME_ROOT, "uids");
    mkdirSync(uids, { recursive: true });
    const dead = { ...processIdentity()!, pid: spawnSync("/bin/true").pid, start_time: "1" };
    const [whole, half] = [join(uids, "1900009100"), join(uids, `1900009101.${dead.pid}.0a0b0c0d0e0f`)];
    onTestFinished(() => [whole, half].forEach((path) => rmSync(path, { force: true })));
    writeFileSync(whole, JSON.stringify(dead));
    writeFileSync(half, "");
    const root = tempDir();
    const parts = {
      root,
      records: join(root, "records"),
      temporary: join(root, "tmp"),
      sandboxes: [],
      before: new Set(allPids()),
      patienceMs: 0,
    };
    expect((await findLeftovers({ ...parts, pids: new Set([dead.pid]) })).locks).toEqual([whole, half]);
    expect((await findLeftovers({ ...parts, pids: new Set([1]) })).locks).toEqual([]);
  },
);

it("finds processes of the run, and not those of one beside it whose directory begins alike", async () => {
  const root = tempDir();
  const parts = {
    root,
    records: join(root, "none"),
    temporary: join(root, "none"),
    sandboxes: [],
    before: new Set(allPids()),
    pids: new Set<number>(),
    patienceMs: 0,
  };
  const sleepers = [`${root}/file`, `${root}-2/file`].map((named) => spawn("sh", ["-c", "echo; read line", named]));
  onTestFinished(() => sleepers.forEach((child) => child.kill("SIGKILL")));
  await Promise.all(sleepers.map((child) => once(child.stdout, "data")));
  const found = (await findLeftovers(parts)).processes;
  expect(found).toEqual([expect.stringMatching(new RegExp(`^${sleepers[0]!.pid}: `))]);
});

it("excuses a process that could not start while Redis was away or the disk full, and no crash", () => {
  const ended = (detail: string): Partial<RunFacts> => ({ unexpected_ends: [{ who: "worker-1", at: 6_500, detail }] });
  for (const kind of ["redis_kill", "disk_full"] as const) {
    expect(breaches(kept({ ...ended("exit code 2"), faults: [fault(kind)] }))).toEqual([]);
    expect(breaches(kept({ ...ended("SIGSEGV"), faults: [fault(kind)] }))).toEqual(["worker-1 ended by itself: SIGSEGV"]);
  }
  expect(breaches(kept({ ...ended("exit code 2"), faults: [fault("model_500")] }))).toHaveLength(1);
});

it("excuses a finish call after the commit only for a session that a fault had doubled", () => {
  const doubled = {
    finishes: [
      { task_id: "t1", thread_id: "thread-1", at: 18_000 },
      { task_id: "t1", thread_id: "thread-0", at: 25_000 },
    ],
  };
  expect(breaches(repeated({}, { ...doubled, faults: [fault("worker_freeze", { pids: [WORKER] })] }))).toEqual([]);
  expect(breaches(repeated({}, doubled))).toEqual(expect.arrayContaining([expect.stringMatching(/finish was called 5000 ms after/)]));
});

it("plans the same faults for the same seed, each kind once before any twice, none before the first result or after the last", () => {
  const plan = planFaults({ seed: 7, tasks: 220 });
  expect(planFaults({ seed: 7, tasks: 220 })).toEqual(plan);
  expect(planFaults({ seed: 8, tasks: 220 })).not.toEqual(plan);
  expect(new Set(plan.slice(0, FAULTS.length).map(({ fault }) => fault)).size).toBe(FAULTS.length);
  const positions = plan.map(({ after_results }) => after_results);
  expect(positions).toEqual([...positions].sort((a, b) => a - b));
  expect(Math.min(...positions)).toBeGreaterThanOrEqual(1);
  expect(Math.max(...positions)).toBeLessThan(220);
  expect(planFaults({ seed: 7, tasks: 16, only: ["redis_kill"] }).every(({ fault }) => fault === "redis_kill")).toBe(true);
});

it.each(GUARD_NAMES)("finds the guard %s in the built program and can take it out; where it is not, it says so [R42]", (name) => {
  const { edits } = GUARDS[name];
  const copy = tempDir();
  for (const { file } of edits) cpSync(join("dist", file), join(copy, file));
  breakGuard(copy, name);
  for (const { file } of edits) {
    expect(readFileSync(join(copy, file), "utf8")).not.toEqual(readFileSync(join("dist", file), "utf8"));
    cpSync("dist/src/errors.js", join(copy, file));
  }
  expect(() => breakGuard(copy, name)).toThrow(`the guard ${name} is there 0 times in ${edits[0].file}, not once`);
});
