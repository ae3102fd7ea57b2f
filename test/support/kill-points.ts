// SPDX-License-Identifier: Apache-2.0

/** What is known of an activation at a point: that no attempt has begun, that one has, or that its end stands. */
export type Phase = "waits" | "runs" | "ended";

/** A statement of the program, before and after which its process is killed; null = not there. */
export interface KillPlace {
  name: string;
  /** For a test's title, after "before" or "after". */
  what: string;
  /** Below dist/. */
  file: string;
  /** A part of its first line that is there once. */
  holds: string;
  /** An expression that names the activation at that place. */
  names: string;
  before: Phase | null;
  after: Phase | null;
  /** Only where this expression holds. */
  when?: string;
  /** Others run activations in the same process: they end first. */
  whenIdle?: true;
}

const RUN = { file: "src/activation/run.js", names: "claim.activation.activation_id" };
const CODEX = { file: "src/activation/run-codex.js", names: "context.activation.activation_id" };
const SPACE = { file: "src/sandbox/space.js", names: "spec.owner.activation_id" };
const CONCLUDE = { file: "src/activation/conclude.js", names: "seen.invocation_id" };
const FINAL = { file: "src/queue/sentinel.js", names: "activation_id", before: null, after: "ended", whenIdle: true } as const;
const WAITS = { before: "waits", after: "waits" } as const;
const RUNS = { before: "runs", after: "runs" } as const;
/** Another place stands right before it: whoever is killed after that one is killed before this one. */
const THEN = { before: null, after: "runs" } as const;

/** The straight line from a row of the task file to a job in the results queue, in its order. */
export const KILL_PLACES: readonly KillPlace[] = [
  {
    name: "validate",
    what: "a row is validated",
    file: "src/rollout/tasks.js",
    holds: "= admit(",
    names: 'raw["task_id"].task_id',
    ...WAITS,
  },
  {
    name: "seal",
    what: "its secrets are sealed",
    file: "src/queue/enqueue.js",
    holds: "sealActivation(activation, keys);",
    names: "activation.activation_id",
    ...WAITS,
  },
  {
    name: "enqueue",
    what: "it is enqueued",
    file: "src/queue/enqueue.js",
    holds: "await flows.addBulk(",
    names: "missing.map(({ activation }) => activation.activation_id).join()",
    ...WAITS,
  },
  {
    name: "claim",
    what: "a worker decides about its claim",
    file: "src/queue/activation-worker.js",
    holds: "await decideClaim(",
    names: "job.id",
    ...WAITS,
  },
  { name: "attempt", what: "an attempt's number is taken", holds: "await beginAttempt(", ...RUN, ...THEN },
  { name: "codex", what: "its Codex is found", holds: "await codexFor(", ...RUN, ...THEN },
  { name: "sandbox", what: "the sandbox is made", holds: 'await stage("sandbox", ', ...RUN, ...THEN },
  {
    name: "uid",
    what: "the sandbox's uid is leased",
    file: "src/sandbox/bubblewrap.js",
    holds: "await leaseUid(",
    names: "spec.owner.activation_id",
    ...THEN,
  },
  { name: "record", what: "the sandbox's owner record is written", holds: "writeOwnerRecord(", ...SPACE, ...THEN },
  { name: "directory", what: "the sandbox's directory is made", holds: "makeSandboxDirectory(", ...SPACE, ...THEN },
  { name: "group", what: "the sandbox's control group is made", holds: "await cgroup?.make()", ...SPACE, ...THEN },
  { name: "place", what: "the task's files are placed", holds: 'await stage("place", ', ...RUN, ...THEN },
  { name: "skills", what: "the skills are placed", holds: 'await stage("skills", ', ...RUN, ...THEN },
  { name: "preflight", what: "the granted servers are looked at", holds: 'await stage("preflight", ', ...RUN, ...THEN },
  { name: "plan", what: "the session is planned", holds: 'await stage("plan", ', ...RUN, ...THEN },
  { name: "write", what: "config.toml is written", holds: 'await stage("configure", ', ...RUN, ...THEN },
  { name: "launch", what: "Codex is launched", holds: "= sandbox.exec(", ...CODEX, ...THEN },
  { name: "event", what: "its first event is seen", holds: "session.apply(record);", when: 'record.kind === "event"', ...CODEX, ...THEN },
  {
    name: "tool",
    what: "a tool call has begun",
    holds: "session.apply(record);",
    when: 'record.event?.type === "item.started" && record.event.item.type === "mcp_tool_call"',
    ...CODEX,
    ...THEN,
  },
  { name: "exit", what: "Codex has exited", holds: "const exit = await ", ...CODEX, ...THEN },
  { name: "stream", what: "its streams are read to the end", holds: 'await stage("codex", ', ...RUN, ...THEN },
  { name: "redact", what: "the session is redacted", holds: "redactFacts(secrets", ...CONCLUDE, ...RUNS },
  { name: "classify", what: "the session is classified", holds: "= classify(", ...CONCLUDE, ...THEN },
  { name: "conclude", what: "the session is concluded", holds: 'await stage("classify", ', ...RUN, ...THEN },
  { name: "collect", what: "deliverables are collected", holds: 'await stage("collect", ', ...RUN, ...THEN },
  { name: "destroy", what: "the sandbox is destroyed", holds: 'await stage("destroy", ', ...RUN, ...THEN },
  {
    name: "save",
    what: "attempt.json is saved",
    file: "src/activation/settle.js",
    holds: "await ports.store.putAttempt(",
    names: "activation_id",
    ...RUNS,
  },
  {
    name: "commit",
    what: "the result is committed",
    file: "src/activation/settle.js",
    holds: "await ports.store.commit(",
    names: "activation_id",
    before: "runs",
    after: "ended",
  },
  {
    name: "link",
    what: "result.json is linked into place",
    file: "src/host/files.js",
    holds: "await link(temporary",
    names: "path",
    when: 'path.endsWith("/result.json")',
    before: "runs",
    after: "ended",
  },
  { name: "settle", what: "the straight line has ended", holds: 'await stage("commit", ', ...RUN, before: null, after: "ended" },
  {
    name: "hand",
    what: "its worker lets go of it",
    file: "src/queue/activation-worker.js",
    holds: "await settle(queues, job, token, disposal",
    names: "job.id",
    before: null,
    after: "ended",
  },
  { ...FINAL, name: "take", what: "`final` has the result", holds: "await committedResult(", before: "ended" },
  { ...FINAL, name: "look", what: "its job is read", holds: "await queues.activations.getJob(", after: null }, // changes nothing
  { ...FINAL, name: "deliver", what: "the result is delivered", holds: 'await queues.tracing.within("deliver", ' },
  { ...FINAL, name: "leave", what: "it has left its run", holds: "await leaveRun(", after: null }, // as the next but one
  { ...FINAL, name: "push", what: "its webhooks are queued", holds: "await pushEnd(" },
  // Only where a resources server is; test/resources/killed.slow.test.ts kills a little later, before the score is kept.
  { ...FINAL, name: "wake", what: "its rollout is woken", holds: "await wakeStep(", after: null },
  { ...FINAL, name: "publish", what: "those who watch are told", holds: "await publishEnd(" },
  { ...FINAL, name: "announce", what: "the run is told", holds: "await announceEnd(" },
  { ...FINAL, name: "keep", what: "the digest of its content is kept", holds: "await keepContent(" },
  { ...FINAL, name: "drop", what: "the secrets are dropped", holds: "await child.updateData(" },
];

/** One moment at which a process dies. */
export interface KillPoint {
  /** As an activation is called that dies there: kill-<name>.<n>. */
  name: string;
  title: string;
  phase: Phase;
}

/** A process that is killed at each of them; see {@link KillPoint}. */
export const KILL_POINTS: readonly KillPoint[] = KILL_PLACES.flatMap(({ name, what, before, after }) => [
  ...(before === null ? [] : [{ name: `${name}-before`, title: `before ${what}`, phase: before }]),
  ...(after === null ? [] : [{ name: `${name}-after`, title: `after ${what}`, phase: after }]),
]);

/** After Codex's exit, reading it, writing the attempt, committing the result, and delivering it. */
export const D15_POINTS: readonly KillPoint[] = ["exit", "conclude", "save", "commit", "deliver"].map((name) =>
  KILL_POINTS.find((point) => point.name === `${name}-after`)!,
);
