// SPDX-License-Identifier: Apache-2.0
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

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
/** Another place stands right before it. */
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
    holds: "await queues.flows.addBulk(",
    names: "missing.map(({ jobId }) => jobId).join()",
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
  { name: "attempt", what: "an attempt's number is taken", holds: "await beginAttempt(", ...RUN, before: "waits", after: "runs" },
  { name: "codex", what: "its Codex is found", holds: "await codexFor(", ...RUN, ...THEN },
  { name: "sandbox", what: "the sandbox is made", holds: "await openSandbox(", ...RUN, ...RUNS },
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
  { name: "place", what: "the task's files are placed", holds: "await placeFiles(", ...RUN, ...THEN },
  { name: "preflight", what: "the granted servers are looked at", holds: "await preflight(", ...RUN, ...THEN },
  { name: "plan", what: "the session is planned", holds: "= planSession(", ...RUN, ...RUNS },
  { name: "write", what: "config.toml is written", holds: "await writeConfig(", ...RUN, ...RUNS },
  { name: "launch", what: "Codex is launched", holds: "= sandbox.exec(", ...CODEX, ...RUNS },
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
  { name: "stream", what: "its streams are read to the end", holds: "await runCodex(", ...RUN, ...THEN },
  { name: "redact", what: "the session is redacted", holds: "redactFacts(secrets", ...CONCLUDE, ...RUNS },
  { name: "classify", what: "the session is classified", holds: "= classify(", ...CONCLUDE, ...RUNS },
  { name: "conclude", what: "the session is concluded", holds: "await report.ended(", ...RUN, ...THEN },
  { name: "collect", what: "deliverables are collected", holds: "await report.collect();", ...RUN, ...RUNS },
  { name: "destroy", what: "the sandbox is destroyed", holds: "await report.destroySandbox();", ...RUN, ...RUNS },
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
  { name: "settle", what: "the straight line has ended", holds: "await settle(", ...RUN, before: null, after: "ended" },
  {
    name: "hand",
    what: "its worker lets go of it",
    file: "src/queue/activation-worker.js",
    holds: "await settle(job, token, disposal",
    names: "job.id",
    before: null,
    after: "ended",
  },
  { ...FINAL, name: "take", what: "`final` has the result", holds: "await committedResult(", before: "ended" },
  { ...FINAL, name: "deliver", what: "the result is delivered", holds: "await deliver(", before: "ended" },
  { ...FINAL, name: "publish", what: "those who watch are told", holds: "await publishEnd(" },
  { ...FINAL, name: "announce", what: "the run is told", holds: "await announceEnd(" },
  { ...FINAL, name: "drop", what: "the secrets are dropped", holds: "await dropSecrets(queues, jobId);" },
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

/** Puts every kill point into a copy of dist/. Throws Error with all statements that are not there exactly once. */
export function insertKillPoints(dist: string): void {
  const missing = KILL_PLACES.flatMap(({ file, holds }) => {
    const count = readFileSync(join(dist, file), "utf8").split(holds).length - 1;
    return count === 1 ? [] : [`"${holds}" is there ${count} times in ${file}, not once`];
  });
  if (missing.length > 0) throw new Error(`test/support/kill-points.ts must follow the code:\n${missing.join("\n")}`);
  mkdirSync(join(dist, "died"));
  copyFileSync(fileURLToPath(new URL("kill-here.mjs", import.meta.url)), join(dist, "kill-here.mjs"));
  for (const { name, file, holds, names, when, whenIdle, before, after } of KILL_PLACES) {
    const call = (side: "before" | "after"): string => {
      const kill = whenIdle === true ? "await killPoints.killWhenIdle" : "killPoints.killHere";
      return `${when === undefined ? "" : `if (${when}) `}${kill}("${name}-${side}", ${names});`;
    };
    wrap(dist, file, holds, { before: before === null ? "" : call("before"), after: after === null ? "" : call("after") });
  }
  const worker = "src/queue/activation-worker.js";
  wrap(dist, worker, "= running.add(", { before: "", after: "killPoints.began();" });
  wrap(dist, worker, "running.remove(", { before: "", after: "killPoints.ended();" });
}

function wrap(dist: string, file: string, holds: string, { before, after }: { before: string; after: string }): void {
  const path = join(dist, file);
  const text = readFileSync(path, "utf8");
  const start = startOfStatement(text, text.indexOf(holds));
  const end = endOfStatement(text, start);
  const statement = text.slice(start, end).trim();
  const wrapped = statement.startsWith("return ")
    ? `const returned = ${statement.slice("return ".length)} ${after} return returned;`
    : `${statement} ${after}`;
  const imported = text.includes("killPoints from")
    ? ""
    : `import * as killPoints from "${"../".repeat(file.split("/").length - 1)}kill-here.mjs";\n`;
  writeFileSync(path, `${imported}${text.slice(0, start)}${before} ${wrapped}${text.slice(end)}`);
}

/** Where its line begins, or that of the condition before it. */
function startOfStatement(text: string, at: number): number {
  const line = text.lastIndexOf("\n", at) + 1;
  const before = text.lastIndexOf("\n", line - 2) + 1;
  return /^\s*if \(.*\)$/.test(text.slice(before, line - 1)) ? before : line;
}

/** Behind the first semicolon that stands in no bracket. */
function endOfStatement(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const sign = text[at]!;
    if ("([{".includes(sign)) depth++;
    else if (")]}".includes(sign)) depth--;
    else if (sign === ";" && depth === 0) return at + 1;
  }
  throw new Error(`no end of the statement ${text.slice(start, start + 80)}`);
}
