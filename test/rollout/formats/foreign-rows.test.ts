// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadSettings } from "../../../src/config/load.ts";
import { referenceFiles } from "../../../src/references/reference-files.ts";
import { openUrlCache } from "../../../src/references/url-cache.ts";
import { promptTemplate } from "../../../src/rollout/formats/prompt-template.ts";
import { checkWithReferences } from "../../../src/rollout/fetch-references.ts";
import { checkTasks, describeBadRows, readTasks, type TaskRow, type TaskSource } from "../../../src/rollout/tasks.ts";
import { gdpvalRows } from "../../support/gdpval-rows.ts";
import { tempDir } from "../../support/temp-dir.ts";

const GDPVAL = gdpvalRows();

async function source(rows: readonly unknown[], facts: Partial<TaskSource> = {}): Promise<TaskSource> {
  const directory = tempDir();
  const path = join(directory, "tasks.jsonl");
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const settings = await loadSettings({ env: { HOME: "/h" }, file: null });
  return {
    path,
    runId: "20261129-120000-0a1b2c3d",
    defaults: settings,
    toolGrants: [],
    policy: { allow_providers: ["bubblewrap"], allow_key_env: ["OPENAI_API_KEY"] },
    repeats: 1,
    referenceFiles: referenceFiles({ baseDir: directory, allowDirs: [], allowUrlHosts: [], maxBytes: 1_000 }, () =>
      openUrlCache(join(directory, "cache")),
    ),
    ...facts,
  };
}

async function rowsOf(given: TaskSource, mode: "check" | "read" = "check"): Promise<TaskRow[]> {
  const rows: TaskRow[] = [];
  for await (const row of readTasks(given, mode)) rows.push(row);
  return rows;
}

const good = (row: TaskRow | undefined) => {
  if (row?.ok !== true) throw new Error(JSON.stringify(row));
  return row;
};
const problemsOf = (row: TaskRow | undefined) => (row?.ok === false ? row.problems.map(({ code, path }) => `${code} ${path}`) : []);
const gym = (params: object, fields: object = {}) => ({ responses_create_params: params, ...fields });

describe("the format of a task file", () => {
  it.each([
    ["rollcall", { id: "a", input: "x" }],
    ["gym", gym({ input: "x" }, { id: 7 })],
    ["gdpval", { task_id: "a", prompt: "x", sector: "s" }],
  ])("is that of its first row: %s", async (format, row) => {
    expect(await checkTasks(await source([{}, row]))).toMatchObject({ format });
  });

  it("is told with what was seen, and where, when a row has another one", async () => {
    const given = await source([gym({ input: "x" }), { id: "a", input: "x" }, GDPVAL[0]]);
    const text = describeBadRows("tasks.jsonl", await checkTasks(given));
    expect(text).toContain(
      'line 2 (id "a"): it looks like a Rollcall row (it has id, input), and the file is read as Gym rows: line 1 is one (it has responses_create_params)',
    );
    expect(text).toContain("line 3");
    expect(text).toContain("or --format gdpval");
  });

  it("is believed when it was given and the row can be read so, and contradicted when not", async () => {
    const row = { ...GDPVAL[0], responses_create_params: { input: "a prompt" } };
    expect((await rowsOf(await source([row], { format: "gym" })))[0]).toMatchObject({ ok: true, activations: [{ input: "a prompt" }] });
    const [wrong] = await rowsOf(await source([gym({ input: "x" })], { format: "gdpval" }));
    expect(wrong).toMatchObject({
      ok: false,
      problems: [{ code: "format_mixed", message: expect.stringContaining("--format gdpval was given") }],
    });
    expect(problemsOf((await rowsOf(await source([GDPVAL[0]], { format: "rollcall" })))[0])).toEqual(["format_mixed "]);
  });
});

describe("a Gym row", () => {
  it("becomes an activation, and keeps every field", async () => {
    const params = {
      input: [
        { role: "developer", content: "be brief" },
        { role: "user", content: [{ type: "input_text", text: "do it" }] },
      ],
      instructions: "first",
      model: "m",
      reasoning: { effort: "low" },
      metadata: { k: "v" },
      temperature: null,
      tools: [],
      parallel_tool_calls: true,
    };
    const row = gym(params, { agent_ref: { name: "codex_agent" }, expected_answer: "{42}", id: 7 });
    const found = good((await rowsOf(await source([row])))[0]);
    expect(found.activations).toMatchObject([
      { task_id: { taskset: "tasks", task_id: "7" }, input: params.input, instructions: "first", model: { name: "m" } },
    ]);
    expect(found.activations[0]).toMatchObject({ codex: { reasoning_effort: "low" }, metadata: { k: "v" } });
    expect(found.foreign).toEqual(row);
  });

  it("without an id is called by its index, and repeats by theirs", async () => {
    const rows = [
      gym({ input: "x" }),
      gym({ input: "y" }, { task_id: "named" }),
      gym({ input: "z" }, { task_id: { taskset: "s", task_id: "t" } }),
    ];
    const found = await rowsOf(await source(rows, { repeats: 2 }));
    expect(found.map((row) => good(row).activations.map(({ episode_id }) => episode_id.rollout_id))).toEqual([
      ["0-r0", "0-r1"],
      ["named-r0", "named-r1"],
      ["t-r0", "t-r1"],
    ]);
  });

  it("is refused with every parameter that a Codex session cannot honour, by the row's own names", async () => {
    const params = {
      temperature: 0.5,
      max_output_tokens: 9,
      tools: [{ type: "function" }],
      tool_choice: "required",
      seed: 1,
      reasoning: { effort: "huge", summary: "auto" },
      metadata: { extra_body: "{}" },
      input: [{ role: "user", content: [{ type: "input_image" }] }],
    };
    const [row] = await rowsOf(await source([gym(params, { tool_grants: [] })]));
    expect(problemsOf(row).sort()).toEqual(
      [
        ...["temperature", "max_output_tokens", "tools", "tool_choice", "seed", "reasoning.summary", "metadata.extra_body"].map(
          (name) => `gym_param responses_create_params.${name}`,
        ),
        "grants_in_foreign_row tool_grants",
        "invalid_field responses_create_params.input",
        "invalid_field responses_create_params.reasoning.effort",
      ].sort(),
    );
    expect(problemsOf((await rowsOf(await source([gym([])])))[0])).toContain("gym_param responses_create_params");
  });
});

describe("a GDPVal row", () => {
  /** Their files do not exist here: small ones stand in, each holding its own path. */
  function standIns(given: TaskSource): void {
    for (const path of GDPVAL.flatMap(({ reference_files }) => reference_files)) {
      const target = join(dirname(given.path), path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, path);
    }
  }

  it("gets its prompt from the template, its files into the workdir by their sha256, and must call finish", async () => {
    const given = await source(GDPVAL);
    standIns(given);
    const said: string[] = [];
    const check = await checkWithReferences(
      given,
      () => undefined,
      (line) => void said.push(line),
    );
    expect(check).toMatchObject({ rows: 5, badRows: 0, format: "gdpval", references: 40 });
    expect(said).toEqual(["reading or fetching 40 reference files"]);
    const rows = (await rowsOf(given, "read")).map(good);
    expect(rows.map(({ inputs }) => inputs.length)).toEqual(GDPVAL.map(({ reference_files }) => reference_files.length));
    const [first, , third] = rows;
    const prompt = JSON.stringify(first?.activations[0]?.input);
    for (const part of [GDPVAL[0]!["prompt"], GDPVAL[0]!["sector"], "- reference_files/Population v2.xlsx"]) expect(prompt).toContain(part);
    expect(prompt).toContain("{size} rows"); // a brace in a value is none of the template's
    expect(first?.activations[0]?.required_tools).toEqual(["finish"]);
    expect(first?.foreign).toEqual(GDPVAL[0]);
    expect(third?.activations[0]?.sandbox.files).toEqual(
      third?.inputs.map(({ sha256, path }, index) => {
        const named = GDPVAL[2]!.reference_files[index]!;
        expect(readFileSync(path, "utf8")).toBe(named);
        return { path: `reference_files/${named.split("/").at(-1)}`, artifact: `sha256:${sha256}`, executable: false };
      }),
    );
  });

  it("keeps two files of one name apart, in the workdir and in the prompt", async () => {
    const given = await source([{ ...GDPVAL[0], reference_files: ["a/TB.xlsx", "b/tb.xlsx"], reference_file_urls: undefined }]);
    for (const path of ["a/TB.xlsx", "b/tb.xlsx"]) {
      mkdirSync(join(dirname(given.path), dirname(path)));
      writeFileSync(join(dirname(given.path), path), path);
    }
    const row = good((await rowsOf(given, "read"))[0]);
    expect(row.activations[0]?.sandbox.files.map(({ path }) => path)).toEqual(["reference_files/TB.xlsx", "reference_files/tb~2.xlsx"]);
    expect(row.activations[0]?.input).toContain("- reference_files/tb~2.xlsx");
  });

  it("without files says so in the prompt; one that was made into a prompt before keeps it", async () => {
    const { reference_files: _, reference_file_urls: __, ...bare } = GDPVAL[0]!;
    const made = { ...bare, task_id: "made", responses_create_params: { input: [{ role: "user", content: "made before" }] } };
    const rows = await rowsOf(await source([bare, made]));
    expect(good(rows[0]).activations[0]?.input).toContain("(none)");
    expect(good(rows[1]).activations[0]?.input).toEqual([{ role: "user", content: "made before" }]);
    const chosen = { promptTemplate: promptTemplate("{prompt}|{sector}", "t") };
    expect(good((await rowsOf(await source([made], chosen)))[0]).activations[0]?.input).toBe(`${bare.prompt}|${bare.sector}`);
  });

  it("is refused with all that is wrong with it, its files included, by line and field", async () => {
    const given = await source([
      {
        ...GDPVAL[0],
        prompt: " ",
        sector: 1,
        task_id: 3,
        tool_grants: [],
        reference_files: ["gone.txt", "x"],
        reference_file_urls: ["ftp://x"],
      },
      { ...GDPVAL[1], reference_file_urls: ["ftp://x/y"], reference_file_sha256s: ["abc"] },
      { ...GDPVAL[3], reference_files: ["gone.txt", "../../../etc/passwd"], reference_file_urls: null },
    ]);
    const rows = await rowsOf(given);
    expect(problemsOf(rows[0]).sort()).toEqual([
      "grants_in_foreign_row tool_grants",
      "invalid_field prompt",
      "invalid_field sector",
      "missing_field task_id",
      "reference_field reference_file_urls",
    ]);
    expect(problemsOf(rows[1])).toEqual([
      "reference_field reference_file_urls[0]",
      "reference_field reference_file_sha256s[0]",
      "reference_missing reference_files[0]",
    ]);
    expect(problemsOf(rows[2])).toEqual(["reference_missing reference_files[0]", "reference_refused reference_files[1]"]);
    expect(describeBadRows("tasks.jsonl", await checkTasks(given))).toContain(
      `line 3 (id ${JSON.stringify(GDPVAL[3]!["task_id"])}): reference_files[0]: there is no file`,
    );
  });

  it("whose file cannot be fetched is a bad row, told after all others", async () => {
    const given = await source([{ ...GDPVAL[0], reference_files: undefined, reference_file_urls: ["https://localhost:1/a"] }]);
    const seen: number[] = [];
    const check = await checkWithReferences(
      given,
      ({ badRows }) => void seen.push(badRows),
      () => undefined,
    );
    expect(seen).toEqual([0, 1]);
    expect(check.bad[0]?.problems).toMatchObject([{ code: "reference_refused", path: "reference_file_urls[0]" }]);
  });
});
