// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { withDefaults } from "../../src/rollout/task-row.ts";
import { checkTasks, describeBadRows, readTasks, type TaskRow, type TaskSource } from "../../src/rollout/tasks.ts";
import { tempDir } from "../support/temp-dir.ts";

const RUN = "20261129-120000-0a1b2c3d";

async function source(lines: string | readonly unknown[], facts: Partial<TaskSource> = {}): Promise<TaskSource> {
  const path = join(tempDir(), "tasks.jsonl");
  writeFileSync(path, typeof lines === "string" ? lines : lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const settings = await loadSettings({ env: { HOME: "/h" }, file: null });
  return {
    path,
    runId: RUN,
    defaults: settings,
    toolGrants: [],
    policy: { allow_providers: ["bubblewrap"], allow_key_env: ["OPENAI_API_KEY"] },
    repeats: 1,
    ...facts,
  };
}

async function rowsOf(lines: string | readonly unknown[], facts: Partial<TaskSource> = {}): Promise<TaskRow[]> {
  return collect(readTasks(await source(lines, facts), "read"));
}

function grant(name: string, token: string) {
  return {
    name,
    type: "mcp",
    required: true,
    connection: { transport: "streamable_http", url: "http://127.0.0.1:1/mcp", headers: { "X-Token": token } },
  };
}

describe("a row in the short form", () => {
  it("becomes a whole activation with the settings' defaults", async () => {
    const [row] = await rowsOf([
      { id: "t 1", input: "do it", required_tools: ["finish"], outputs: ["*.md"], metadata: { k: "v" }, max_attempts: 2 },
    ]);
    expect(row).toMatchObject({
      ok: true,
      line: 1,
      taskId: "t 1",
      activations: [
        {
          run_id: RUN,
          task_id: { taskset: "tasks", task_id: "t 1" },
          input: "do it",
          required_tools: ["finish"],
          outputs: { paths: ["*.md"] },
          metadata: { k: "v" },
          max_attempts: 2,
          reply_to: null,
          codex: { timeout_seconds: 600 },
          sandbox: { provider: "bubblewrap" },
          model: { api_key_env: "OPENAI_API_KEY" },
        },
      ],
    });
  });

  it("has its own grant replace a configured one of the same name, whole", async () => {
    const toolGrants = [grant("office", "configured"), grant("other", "configured")] as TaskSource["toolGrants"];
    const [row] = await rowsOf([{ id: "a", input: "x", tool_grants: [grant("office", "own")] }], { toolGrants });
    const grants = row?.ok === true ? row.activations[0]!.tool_grants : [];
    expect(grants.map((one) => [one.name, JSON.stringify(one).includes("own")])).toEqual([
      ["other", false],
      ["office", true],
    ]);
  });

  it("refuses an unknown field and says which one is meant", async () => {
    const [row] = await rowsOf([{ id: "a", inptu: "x" }]);
    expect(row).toMatchObject({
      ok: false,
      problems: [{ code: "unknown_field", path: "inptu", message: expect.stringContaining("did you mean input?") }],
    });
  });

  it("has its local files put in, byte for byte, beside inline ones", async () => {
    const task = await source([{ id: "a", input: "x", files: [{ from: "in.bin" }, { path: "b/c.txt", content: "text" }] }]);
    const bytes = Buffer.from([0, 255, 10, 128]);
    writeFileSync(join(task.path, "..", "in.bin"), bytes);
    const [row] = await collect(readTasks(task, "read"));
    expect(row).toMatchObject({
      ok: true,
      activations: [
        {
          sandbox: {
            files: [
              { path: "in.bin", content_base64: bytes.toString("base64") },
              { path: "b/c.txt", content: "text" },
            ],
          },
        },
      ],
    });
  });

  it("names a file to place that is not there, in the words of the row", async () => {
    const [row] = await rowsOf([{ id: "a", input: "x", files: [{ path: "x", from: "missing.docx" }] }]);
    expect(row).toMatchObject({
      ok: false,
      problems: [{ code: "file_missing", path: "files[0].from", message: expect.stringContaining("missing.docx") }],
    });
  });
});

describe("a whole activation as a row", () => {
  it("keeps what it says and gets what it leaves out", async () => {
    const raw = {
      task_id: { taskset: "gdpval", task_id: "t" },
      activation_id: "own-1",
      input: "x",
      codex: { timeout_seconds: 5 },
      model: { api_key: "k" },
      reply_to: "results",
    };
    const [row] = await rowsOf([raw]);
    expect(row).toMatchObject({
      ok: true,
      activations: [
        {
          activation_id: "own-1",
          codex: { timeout_seconds: 5, session_close_timeout_seconds: 60 },
          model: { api_key: "k" },
          reply_to: "results",
        },
      ],
    });
  });

  it("goes with the run's codex_version, and never with what is its worker's to decide", async () => {
    const defaults = await loadSettings({
      env: { HOME: "/nonexistent" },
      file: null,
      overrides: { codex_version: "0.144.4", codex: { unknown_version: "try" } },
    });
    const task = { task_id: { taskset: "s", task_id: "t" }, input: "x" };
    expect(withDefaults(task, defaults)["codex"]).toMatchObject({ version: "0.144.4", timeout_seconds: 600 });
    expect(withDefaults(task, defaults)["codex"]).not.toHaveProperty("unknown_version");
    expect(withDefaults({ ...task, codex: { version: "0.171.0" } }, defaults)["codex"]).toMatchObject({ version: "0.171.0" });
    const without = await loadSettings({ env: { HOME: "/nonexistent" }, file: null });
    expect(withDefaults(task, without)["codex"]).not.toHaveProperty("version");
  });

  it("must not name another run", async () => {
    const [row] = await rowsOf([{ task_id: { taskset: "s", task_id: "t" }, run_id: "other", input: "x" }]);
    expect(row).toMatchObject({ ok: false, problems: [{ code: "run_id_foreign" }] });
  });
});

describe("ids", () => {
  const ids = [
    "../../x",
    "/abs",
    "a/b",
    "a\\b",
    ".",
    "..",
    " ",
    "-rf",
    "CON",
    "a:b",
    "0",
    "1e3",
    "A",
    "a",
    "🦉",
    "\u202e",
    "\0",
    "t-a1",
    "__proto__",
    "x".repeat(300),
    `${"x".repeat(299)}y`,
    "é".normalize("NFC"),
    "é".normalize("NFD"),
  ];

  it("of any kind give distinct, safe names, and the original stays [E12]", async () => {
    const rows = await rowsOf(ids.map((id) => ({ id, input: "x" })));
    const activations = rows.flatMap((row) => (row.ok ? row.activations : []));
    expect(rows.filter((row) => !row.ok)).toEqual([]);
    expect(activations.map(({ task_id }) => task_id.task_id)).toEqual(ids);
    expect(new Set(activations.map(({ activation_id }) => activation_id)).size).toBe(ids.length);
    expect(new Set(activations.map(({ episode_id }) => episode_id.rollout_id)).size).toBe(ids.length);
    for (const { activation_id } of activations) {
      expect(activation_id).toMatch(/^[A-Za-z][A-Za-z0-9_.-]{0,199}$/);
      expect(resolve("/store", activation_id).startsWith(`/store${sep}`)).toBe(true);
    }
  });

  it("that are empty, or no text, are refused by the row's own name of the field [E12]", async () => {
    const rows = await rowsOf([
      { id: "", input: "x" },
      { id: 7, input: "x" },
    ]);
    expect(rows).toMatchObject([
      { ok: false, problems: [{ path: "id" }] },
      { ok: false, problems: [{ path: "id" }] },
    ]);
  });

  it("that are there twice are named with both lines", async () => {
    const rows = await rowsOf([
      { id: "a", input: "1" },
      { id: "b", input: "2" },
      { id: "a", input: "3" },
    ]);
    expect(rows[2]).toMatchObject({ ok: false, line: 3, problems: [{ code: "duplicate_id", message: expect.stringContaining("line 1") }] });
  });

  it("get a suffix per repeat that no task's own id can equal", async () => {
    const rows = await rowsOf(
      [
        { id: "x", input: "1" },
        { id: "x-r0", input: "2" },
      ],
      { repeats: 2 },
    );
    const names = rows.flatMap((row) => (row.ok ? row.activations.map(({ episode_id }) => episode_id.rollout_id) : []));
    expect(names).toEqual(["x-r0", "x-r1", "x-r0-r0", "x-r0-r1"]);
  });
});

describe("a task file", () => {
  it("may have blank lines, a byte order mark, and no line break at its end", async () => {
    const rows = await rowsOf('\ufeff{"id":"a","input":"x"}\n\n  \n{"id":"b","input":"価格 😀"}');
    expect(rows.map(({ line, taskId }) => [line, taskId])).toEqual([
      [1, "a"],
      [4, "b"],
    ]);
  });

  it.each([
    ["an array", '[{"id":"a"}]\n', "an array"],
    ["a part of pretty-printed JSON", '{\n  "id": "a"\n}\n', "several lines"],
    ["CSV", "id,input\n", "not JSON"],
    ["null", "null\n", "null"],
  ])("that holds %s is named with its line and what JSONL is", async (_what, text, reason) => {
    const [row] = await rowsOf(text);
    expect(row).toMatchObject({ ok: false, line: 1, problems: [{ code: "not_jsonl", message: expect.stringContaining(reason) }] });
  });

  it("that is not UTF-8 is named, and nothing of a bad line is quoted", async () => {
    const path = (await source("")).path;
    writeFileSync(path, Buffer.from([0x7b, 0xff, 0xfe, 0x0a]));
    const bad = await checkTasks({ ...(await source("")), path });
    expect(bad.bad).toMatchObject([{ line: 1, problems: [{ message: "it is not UTF-8 text" }] }]);
    const broken = await checkTasks(await source('{"id":"a","tool_grants":[{"headers":{"X":"s3cret-token"}}\n'));
    expect(describeBadRows("t", broken)).not.toContain("s3cret");
  });

  it("with a prompt of 10 MB has that row refused with both lengths", async () => {
    const [row] = await rowsOf([{ id: "big", input: "x".repeat(10_000_000) }]);
    expect(row).toMatchObject({
      ok: false,
      problems: [{ code: "input_too_long", path: "input", message: expect.stringMatching(/10000000 .*1048576/) }],
    });
  });

  it("with a line over the limit has that line refused and goes on behind it", async () => {
    const rows = await rowsOf(`${"x".repeat(33 * 1024 * 1024)}\n{"id":"b","input":"x"}\n`);
    expect(rows).toMatchObject([
      { ok: false, problems: [{ code: "line_too_long" }] },
      { ok: true, line: 2 },
    ]);
  });

  it("has all its bad rows and all their reasons listed", async () => {
    const lines = Array.from({ length: 200 }, (_, index) => ({
      id: `t${index}`,
      input: index % 50 === 7 ? "" : "x",
      ...(index === 7 ? { max_attempts: 0 } : {}),
    }));
    const task = await source(lines);
    const check = await checkTasks(task);
    expect(check).toMatchObject({ rows: 200, badRows: 4 });
    expect(check.ids).toHaveLength(196);
    const text = describeBadRows("tasks.jsonl", check);
    expect(text).toContain("4 of 200 rows");
    expect(text.split("\n").filter((line) => line.includes("line 8 "))).toHaveLength(2);
    expect(text).toContain('line 158 (id "t157"): input:');
  });

  it.each([
    ["a grant URL that is not http", { connection: { transport: "streamable_http", url: "ftp://x/mcp" } }, "tool_grants[0].connection.url"],
    [
      "a header name that HTTP forbids",
      { connection: { transport: "streamable_http", url: "http://x/", headers: { "a b": "v" } } },
      "tool_grants[0].connection.headers",
    ],
    [
      "a header value that HTTP forbids",
      { connection: { transport: "streamable_http", url: "http://x/", headers: { a: "v\r\nx: y" } } },
      "tool_grants[0].connection.headers.a",
    ],
  ])("with %s has the field named and the value kept to itself", async (_what, facts, path) => {
    const check = await checkTasks(
      await source([{ id: "a", input: "x", tool_grants: [{ name: "g", type: "mcp", required: true, ...facts }] }]),
    );
    expect(check.bad[0]?.problems.map((problem) => problem.path)).toContain(path);
  });

  it("keeps its digest whatever the limit is, also when it has many chunks", async () => {
    const lines = Array.from({ length: 10 }, (_, index) => ({ id: `t${index}`, input: "x".repeat(100_000) }));
    const task = await source(lines);
    const limited = await checkTasks({ ...task, limit: 1 });
    expect(limited.rows).toBe(1);
    expect(limited.sha256).toBe((await checkTasks(task)).sha256);
  });

  it("that is not there, or a directory, is named", async () => {
    const task = await source("");
    await expect(checkTasks({ ...task, path: "/nowhere/t.jsonl" })).rejects.toThrow("there is no such file");
    await expect(checkTasks({ ...task, path: "/tmp" })).rejects.toThrow("not a regular file");
  });
});

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
