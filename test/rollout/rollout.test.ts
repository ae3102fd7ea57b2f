// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { loadSettings } from "../../src/config/load.ts";
import type { SessionActivation } from "../../src/contract/activation.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { RollcallError } from "../../src/errors.ts";
import { collectResults } from "../../src/rollout/collect.ts";
import { exitCodeOf } from "../../src/rollout/exit-code.ts";
import { gitState } from "../../src/host/git.ts";
import { defaultPromptTemplate, promptTemplate } from "../../src/rollout/formats/prompt-template.ts";
import type { TaskSource } from "../../src/rollout/tasks.ts";
import { runBatch, type BatchPorts, type BatchRequest } from "../../src/rollout/rollout.ts";
import type { Summary } from "../../src/rollout/summary.ts";
import { directFleet } from "../support/batch-fleet.ts";
import { attemptOf } from "../support/result-documents.ts";
import { tempDir } from "../support/temp-dir.ts";

type End = (activation: SessionActivation, generation: number) => Partial<ActivationResult> | null;

const COMPLETED: Partial<ActivationResult> = { attempts: [attemptOf(0, { status: "completed" })] };
const STARTUP_FAILED: Partial<ActivationResult> = {
  status: "failed",
  cause_class: "infrastructure",
  attempts: [attemptOf(0)],
  observations: { source: "codex", records: [], gaps: [{ code: "agent_startup_failed" }] },
};
const AGENT_FAILED: Partial<ActivationResult> = { status: "failed", cause_class: "agent", attempts: [attemptOf(0)] };

let root: string;
let tasks: string;
let out: string;
beforeEach(() => {
  root = tempDir();
  tasks = join(root, "tasks.jsonl");
  out = join(root, "out");
});

function writeTasks(rows: readonly unknown[]): void {
  writeFileSync(tasks, rows.map((row) => `${typeof row === "string" ? row : JSON.stringify(row)}\n`).join(""));
}

function numbered(count: number): { id: string; input: string }[] {
  return Array.from({ length: count }, (_, index) => ({ id: `t${index}`, input: "x" }));
}

function gymRow(task_id: string, fields: object = {}) {
  return { responses_create_params: { input: "x" }, task_id, ...fields };
}

/** One start of the batch, as the command does it. */
async function start(
  end: End,
  facts: Partial<Omit<BatchRequest, "tasks">> & { limit?: number } = {},
  ports: Partial<BatchPorts> = {},
  repeats = 1,
  source: Partial<TaskSource> = {},
) {
  const settings = await loadSettings({ env: { HOME: root }, file: null });
  const said: string[] = [];
  let fleet: ReturnType<typeof directFleet> | null = null;
  const request: BatchRequest = {
    out,
    tasks: {
      path: tasks,
      defaults: settings,
      toolGrants: [],
      policy: { allow_providers: ["bubblewrap"], allow_key_env: ["OPENAI_API_KEY"] },
      repeats,
      ...source,
      ...(facts.limit === undefined ? {} : { limit: facts.limit }),
    },
    skipInvalid: false,
    allowEmpty: false,
    retry: "infra",
    probe: null,
    breaker: "auto",
    budget: { max_model_calls: null, max_tokens: null, max_hours: null },
    comparable: {},
    otherSettings: {},
    versions: {},
    ...facts,
  };
  const outcome = await runBatch(request, {
    reporter: { say: (text) => said.push(text), ended: () => undefined, breaker: () => undefined, progress: () => undefined },
    openFleet: async (dir) => (fleet = directFleet(await openDirectoryStore(dir.file("artifacts")), end)),
    preflight: () => Promise.resolve(),
    onAccepted: () => undefined,
    stop: { signal: new AbortController().signal, now: new AbortController().signal },
    ...ports,
  }).then(
    ({ summary }) => ({ summary: summary as Summary | null, error: null as unknown }),
    (error: unknown) => ({ summary: null, error }),
  );
  const enqueued = (fleet as ReturnType<typeof directFleet> | null)?.enqueued.map((id) => id.replace(/^act-\d+-\d+-[0-9a-f]+-/, "")) ?? [];
  return { ...outcome, said: said.join("\n"), enqueued, stopped: (fleet as ReturnType<typeof directFleet> | null)?.stopped ?? false };
}

function recorded(): { task: string; status: string }[] {
  const lines = readFileSync(join(out, "results.jsonl"), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => {
    const result = JSON.parse(line) as ActivationResult;
    return { task: result.task_id.task_id, status: result.status };
  });
}

describe("a batch", () => {
  it("ends with one result per task and a summary in the directory [R45]", async () => {
    writeTasks(numbered(220));
    const { summary } = await start(({ task_id }) => (task_id.task_id === "t7" ? AGENT_FAILED : COMPLETED));
    expect(summary).toMatchObject({ total: 220, missing: 0, by_status: { completed: 219, failed: 1 }, interrupted: false });
    expect(recorded()).toHaveLength(220);
    expect(JSON.parse(readFileSync(join(out, "summary.json"), "utf8"))).toEqual(summary);
    expect(exitCodeOf(summary!, { allowEmpty: false })).toBe(1);
  });

  it("does nothing when everything is done, and says so", async () => {
    writeTasks(numbered(3));
    await start(() => COMPLETED);
    const { said, enqueued, summary } = await start(() => COMPLETED);
    expect(said).toContain("3 done before; nothing is left to run");
    expect(enqueued).toEqual([]);
    expect(summary).toMatchObject({ total: 3, by_status: { completed: 3 } });
  });

  it.each([
    ["infra", ["t1", "t3"]],
    ["failed", ["t1", "t2", "t3"]],
    ["none", ["t3"]],
  ] as const)("started again runs by --retry %s what ended badly, and what never ran [E1]", async (retry, expected) => {
    writeTasks(numbered(4));
    await start(({ task_id }) => ({ t1: STARTUP_FAILED, t2: AGENT_FAILED })[task_id.task_id] ?? COMPLETED, { limit: 3 });
    const { enqueued, summary } = await start((_activation, generation) => ({ ...COMPLETED, generation }), { retry });
    expect(enqueued.sort()).toEqual(expected);
    expect(summary).toMatchObject({ total: 4, missing: 0 });
  });

  it("takes in from the store what a crash kept from results.jsonl, without running it again [E2]", async () => {
    writeTasks(numbered(3));
    await start(() => COMPLETED);
    truncateSync(join(out, "results.jsonl"), 100);
    const { enqueued, said, summary } = await start(() => COMPLETED);
    expect(enqueued).toEqual([]);
    expect(said).toMatch(/torn last line[^]*3 taken in from the store/);
    expect(summary).toMatchObject({ by_status: { completed: 3 } });
  });

  it("runs again, and says so, when somebody deleted one result from the store [E2]", async () => {
    writeTasks(numbered(3));
    await start(() => COMPLETED);
    const runId = (JSON.parse(readFileSync(join(out, "manifest.json"), "utf8")) as { run_id: string }).run_id;
    rmSync(join(out, "artifacts", `act-${runId}-t1`), { recursive: true });
    const { enqueued, said } = await start(() => COMPLETED);
    expect(enqueued).toEqual(["t1"]);
    expect(said).toContain("1 with a line in results.jsonl but no result in the store");
  });

  it("stops at a signal with what ended saved, and the next start goes on", async () => {
    writeTasks(numbered(5));
    const stop = new AbortController();
    const end: End = ({ task_id }) => {
      if (task_id.task_id !== "t2") return COMPLETED;
      stop.abort();
      return null;
    };
    const first = await start(end, {}, { stop: { signal: stop.signal, now: new AbortController().signal } });
    expect(first.stopped).toBe(true);
    expect(first.summary).toMatchObject({ interrupted: true });
    expect(exitCodeOf(first.summary!, { allowEmpty: false })).toBe(75);
    const saved = recorded().length;
    const second = await start(() => COMPLETED);
    expect(second.enqueued).toHaveLength(5 - saved);
    expect(
      recorded()
        .map(({ task }) => task)
        .sort(),
    ).toEqual(["t0", "t1", "t2", "t3", "t4"]);
  });

  it("with bad rows runs none of them, and with --skip-invalid records those as refused", async () => {
    writeTasks([...numbered(2), "not json", { id: "t1", input: "again" }, { id: "empty", input: "" }]);
    const strict = await start(() => COMPLETED);
    expect(strict.error).toMatchObject({
      code: "tasks_invalid",
      exitCode: 2,
      message: expect.stringMatching(/3 of 5 rows[^]*line 3:[^]*line 4 [^]*line 5 /) as string,
    });
    expect(strict.enqueued).toEqual([]);
    const lenient = await start(() => COMPLETED, { skipInvalid: true });
    expect(lenient.summary).toMatchObject({ total: 5, missing: 0, by_status: { completed: 2, refused: 3 } });
    expect(
      recorded()
        .map(({ task }) => task)
        .sort(),
    ).toEqual(["empty", "line-3", "line-4", "t0", "t1"]);
  });

  it("runs a row that was recorded as refused once it is valid", async () => {
    writeTasks([{ id: "a", input: "x", files: [{ from: "late.txt" }] }]);
    expect((await start(() => COMPLETED, { skipInvalid: true })).summary).toMatchObject({ by_status: { refused: 1 } });
    writeFileSync(join(root, "late.txt"), "here");
    expect((await start(() => COMPLETED, { skipInvalid: true })).summary).toMatchObject({ by_status: { completed: 1, refused: 0 } });
  });

  it("refuses an empty file unless that is allowed [E18]", async () => {
    writeTasks([]);
    expect((await start(() => COMPLETED)).error).toMatchObject({ code: "tasks_empty", exitCode: 2 });
    expect((await start(() => COMPLETED, { allowEmpty: true })).summary).toMatchObject({ total: 0 });
  });

  it("lays every rollout's directory out before its line, so that a crash between the two loses neither [R46 E2]", async () => {
    writeTasks([{ responses_create_params: { input: "x" }, task_id: "a/b" }, gymRow("plain")]);
    await start(() => COMPLETED, {}, {}, 2);
    const places = ["task_a_b-c14cddc033f6/repeat_0", "task_a_b-c14cddc033f6/repeat_1", "task_plain/repeat_0", "task_plain/repeat_1"];
    for (const place of places) expect(readFileSync(join(out, place, "finish_params.json"), "utf8")).toBe("null\n");
    truncateSync(join(out, "results.jsonl"), 0);
    for (const place of places) rmSync(join(out, place), { recursive: true });
    expect((await start(() => COMPLETED, {}, {}, 2)).enqueued).toEqual([]);
    for (const place of places) expect(existsSync(join(out, place, "finish_params.json"))).toBe(true);
    rmSync(join(out, "task_plain"), { recursive: true });
    await collectResults(out, openDirectoryStore);
    expect(existsSync(join(out, places[3]!, "finish_params.json"))).toBe(true);
  });

  it("goes on past a torn result in the store, names it and runs that task again [fault B2]", async () => {
    writeTasks(numbered(4));
    await start(() => COMPLETED);
    const lines = readFileSync(join(out, "results.jsonl"), "utf8").split("\n").filter(Boolean);
    const ids = lines.map((line) => (JSON.parse(line) as ActivationResult).activation_id);
    const resultFile = (index: number): string => join(out, "artifacts", ids[index]!, "result.json");
    truncateSync(resultFile(1));
    truncateSync(resultFile(2), 40);
    writeFileSync(join(out, "results.jsonl"), `${lines[2]!}\n`); // of t2 there is a line, of t1 none

    const { results, remarks } = await collectResults(out, openDirectoryStore);
    expect({
      results,
      kept: recorded()
        .map(({ task }) => task)
        .sort(),
    }).toEqual({ results: 2, kept: ["t0", "t2", "t3"] });
    expect(remarks.sort()).toEqual([expect.stringMatching(/t1: .*torn.*not ended/), expect.stringMatching(/t2: .*torn.*kept/)]);
    const again = await start(() => COMPLETED);
    expect(again).toMatchObject({ error: null, enqueued: ["t1"], summary: { missing: 0, by_status: { completed: 4 } } });
    expect(again.said).toContain(`1 whose result in the store is torn or gone (${ids[1]!}): run again`);
  });

  it("returns a foreign row with its result, whole, also when it is collected anew, and none of ours", async () => {
    const rows = [gymRow("a", { rubric: "é".repeat(30_000), agent_ref: { name: "x" } }), gymRow("b")];
    writeTasks(rows);
    await start(() => COMPLETED);
    const rowsIn = () =>
      readFileSync(join(out, "results.jsonl"), "utf8")
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { row?: unknown }).row);
    expect(rowsIn()).toEqual(rows);
    rmSync(tasks);
    await collectResults(out, openDirectoryStore);
    expect(rowsIn().sort((one) => (JSON.stringify(one).length > 100 ? -1 : 1))).toEqual(rows);

    out = join(root, "own");
    writeTasks([{ id: "own", input: "FAKE-SECRET-INPUT" }]);
    await start(() => COMPLETED);
    expect(rowsIn()).toEqual([undefined]);
    expect(readFileSync(join(out, "rows.jsonl"), "utf8")).not.toContain("FAKE-SECRET-INPUT");
  });

  it("counts the time of all starts, whatever is set on the host's clock, and collecting leaves it [fault B10]", async () => {
    writeTasks(numbered(2));
    const hour = 3_600_000;
    const clock = Date.now;
    const jumping: End = () => {
      Date.now = () => clock() - hour;
      return COMPLETED;
    };
    try {
      const first = await start(jumping, { limit: 1 });
      expect(first.summary!.wall_ms).toBeGreaterThanOrEqual(0);
      expect(first.summary!.wall_ms).toBeLessThan(hour / 2);
    } finally {
      Date.now = clock;
    }
    const budgetFile = join(out, "budget.json");
    const budget = JSON.parse(readFileSync(budgetFile, "utf8")) as { used: object };
    writeFileSync(budgetFile, JSON.stringify({ ...budget, used: { ...budget.used, hours: 2 } })); // as if it had worked so long
    const { summary } = await start(() => COMPLETED);
    expect(summary!.wall_ms).toBeGreaterThanOrEqual(2 * hour);
    expect(summary!.wall_ms).toBeLessThan(2.5 * hour);
    expect((await collectResults(out, openDirectoryStore)).summary.wall_ms).toBe(summary!.wall_ms);
  });

  it("accounts for every rollout that was asked for in coverage.json", async () => {
    writeTasks([...numbered(4), { id: "bad", input: "" }]);
    const stop = new AbortController();
    const end: End = ({ task_id: { task_id } }) => {
      if (task_id === "t3") stop.abort();
      return task_id === "t3" ? null : task_id === "t1" ? AGENT_FAILED : COMPLETED;
    };
    await start(end, { skipInvalid: true }, { stop: { signal: stop.signal, now: new AbortController().signal } });
    const coverage = () => JSON.parse(readFileSync(join(out, "coverage.json"), "utf8")) as Record<string, unknown>;
    expect(coverage()).toMatchObject({ expected: 5, failed: 1, refused: 1, reconciled: true, complete: false });
    expect(coverage()["missing_ids"]).toContainEqual(expect.stringMatching(/-t3$/));
    await start(() => COMPLETED, { skipInvalid: true });
    expect(coverage()).toMatchObject({ completed: 3, failed: 1, refused: 1, missing: 0, complete: true, not_asked: 0 });
    await start(() => COMPLETED, { skipInvalid: true, limit: 2 });
    expect(coverage()).toMatchObject({ expected: 2, completed: 1, failed: 1, reconciled: true, not_asked: 3 });
  });

  it("keeps in the manifest how its rows were read and where they came from, and refuses another way", async () => {
    execFileSync("git", ["init", "-q", root]);
    writeTasks([{ prompt: "x", sector: "s", task_id: "a" }]);
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", root, "-c", "user.name=x", "-c", "user.email=x@x", ...args], { encoding: "utf8" });
    git("add", "tasks.jsonl");
    git("commit", "-qm", "tasks");
    await start(() => COMPLETED);
    const manifest = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8")) as Record<string, unknown>;
    expect(manifest).toMatchObject({
      tasks: { git: { commit: git("rev-parse", "HEAD").trim(), modified: false } },
      settings: { format: "gdpval", prompt_template_sha256: defaultPromptTemplate().sha256 },
    });
    const other = await start(() => COMPLETED, {}, {}, 1, { promptTemplate: promptTemplate("{prompt}", "t") });
    expect(other.error).toMatchObject({ code: "out_foreign", message: expect.stringContaining("prompt_template_sha256: ") as string });
    writeTasks([
      { prompt: "y", sector: "s", task_id: "a" },
      { prompt: "z", sector: "s", task_id: "new" },
    ]);
    const changed = await start(() => COMPLETED);
    expect(changed.error).toMatchObject({
      code: "out_foreign",
      message: expect.stringMatching(
        /another task file[^]*line 1 \(id "a"\) has changed: prompt\n {2}line 2 \(id "new"\) is new$/,
      ) as string,
    });
    expect(await gitState(tasks)).toMatchObject({ modified: true });
    expect(await gitState(join(tempDir(), "x"))).toBeNull();
  });

  it("takes the same rows however they are written and whatever their tokens, and shows a real change by field [fault B8]", async () => {
    const row = (token: string, name = "s", input = "x") => ({
      id: "a",
      input,
      tool_grants: [
        {
          type: "mcp",
          name,
          required: false,
          connection: { transport: "streamable_http", url: `http://127.0.0.1/mcp?t=${token}`, headers: { Authorization: token } },
        },
      ],
    });
    writeTasks([row("token-1"), ...numbered(1)]);
    await start(() => null, {}, { stop: { signal: AbortSignal.abort(), now: new AbortController().signal } });
    expect(readFileSync(join(out, "rows.jsonl"), "utf8")).not.toContain("token-1");
    const { id, input, ...rest } = row("token-2");
    writeFileSync(
      tasks,
      `${JSON.stringify({ ...rest, input, id }, null, 1).replaceAll("\n", " ")}\r\n\r\n${JSON.stringify(numbered(1)[0])}`,
    );
    expect(await start(() => COMPLETED)).toMatchObject({ error: null, summary: { by_status: { completed: 2 } } });
    writeTasks([row("token-2", "other", "y"), ...numbered(1)]);
    const changed = (await start(() => COMPLETED)).error as Error;
    expect(changed.message).toMatch(/another task file[^]*line 1 \(id "a"\) has changed: input, tool_grants\[0\]\.name$/);
  });

  it("takes new settings and rows in a directory of which nothing was queued yet, and then no others [fault B9]", async () => {
    writeTasks(numbered(1));
    const refused = new RollcallError("model_key_missing", "no key");
    expect(await start(() => COMPLETED, { comparable: { model: "a" } }, { preflight: () => Promise.reject(refused) })).toMatchObject({
      error: refused,
      enqueued: [],
    });
    writeTasks(numbered(2));
    expect(
      await start(() => null, { comparable: { model: "b" } }, { stop: { signal: AbortSignal.abort(), now: new AbortController().signal } }),
    ).toMatchObject({ error: null });
    const manifest = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8")) as object;
    expect(manifest).toMatchObject({ settings: { model: "b" }, queued: true });
    expect((await start(() => COMPLETED, { comparable: { model: "a" } })).error).toMatchObject({ code: "out_foreign" });
    expect(await start(() => COMPLETED, { comparable: { model: "b" } })).toMatchObject({ error: null, summary: { missing: 0 } });
    expect(JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"))).toEqual(manifest);
  });

  it("refuses a directory of another task file", async () => {
    writeTasks(numbered(1));
    await start(() => COMPLETED);
    writeTasks(numbered(2));
    expect((await start(() => COMPLETED)).error).toMatchObject({ code: "out_foreign", exitCode: 2 });
  });
});

describe("the probe", () => {
  it("queues the rest only after the first task of more than 20 has begun", async () => {
    writeTasks(numbered(21));
    const order: string[] = [];
    const { summary } = await start(({ task_id }) => {
      order.push(task_id.task_id);
      return COMPLETED;
    });
    expect(order[0]).toBe("t0");
    expect(summary).toMatchObject({ by_status: { completed: 21 } });
  });

  it("stops after three tasks when none can be started, with their results saved", async () => {
    writeTasks(numbered(30));
    const { error, enqueued } = await start(() => STARTUP_FAILED);
    expect(error).toMatchObject({ code: "probe_failed", exitCode: 3 });
    expect(enqueued).toEqual(["t0", "t1", "t2"]);
    expect(recorded()).toHaveLength(3);
    expect(JSON.parse(readFileSync(join(out, "summary.json"), "utf8"))).toMatchObject({ total: 30, missing: 27 });
  });

  it("goes on behind a first task that is broken by itself", async () => {
    writeTasks(numbered(30));
    const { summary } = await start(({ task_id }) => (task_id.task_id === "t0" ? STARTUP_FAILED : COMPLETED));
    expect(summary).toMatchObject({ by_status: { completed: 29, failed: 1 } });
  });
});

it("collect rebuilds the files from the store, keeping rows that were refused before they were queued", async () => {
  writeTasks([...numbered(3), "not json"]);
  const { summary } = await start(() => COMPLETED, { skipInvalid: true });
  const lines = readFileSync(join(out, "results.jsonl"), "utf8").split("\n");
  writeFileSync(join(out, "results.jsonl"), lines.filter((line) => line.includes("line-4")).join("\n") + "\n");
  rmSync(join(out, "summary.json"));
  const rebuilt = await collectResults(out, openDirectoryStore);
  expect(rebuilt).toMatchObject({ results: 3, kept: 1, summary: { by_status: summary!.by_status } });
  expect(recorded()).toHaveLength(4);
});
