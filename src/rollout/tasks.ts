// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { shortSecretWarnings } from "../activation/short-secrets.ts";
import { modelBaseUrl } from "../codex/config.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { withDerivedIds } from "../contract/derive.ts";
import { overlayGrants, type ToolGrant } from "../contract/grant.ts";
import { captureKey, safeName } from "../contract/identity.ts";
import { admit, type AdmissionPolicy } from "../contract/refusals.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import type { LocalCopy, Reference } from "../references/reference.ts";
import type { ReferenceFiles } from "../references/reference-files.ts";
import { detectFormat, formatProblem, type FileFormat, type RowFormat } from "./formats/detect.ts";
import type { PromptTemplate } from "./formats/prompt-template.ts";
import { decodeLine, readLines } from "./lines.ts";
import { refusedNames } from "./refused-row.ts";
import { rowIdentity, type RowIdentity } from "./row-identity.ts";
import { spellOut } from "./spell-out.ts";
import {
  type BadRow,
  dataForServer,
  isRow,
  notARow,
  parseRow,
  rowTaskId,
  type Row,
  type RowDefaults,
  type RowProblem,
  withCreateParams,
  PART_OF_JSON,
} from "./task-row.ts";

/** Longest line of a task file. A prompt has at most 1 MB and local files are named, not pasted. */
const MAX_ROW_BYTES = 32 * 1024 * 1024;

export interface TaskSource {
  path: string;
  runId: string;
  defaults: RowDefaults;
  /** Given to every row, overlaid by the row's own by name. */
  toolGrants: readonly ToolGrant[];
  policy: AdmissionPolicy;
  /** Rollouts of each task; more than one are named `<safe name>-r<k>`, k from 0. */
  repeats: number;
  /** Only so many rows, from the top. */
  limit?: number;
  /** How the rows are written; default: as the first of them looks. */
  format?: RowFormat | "auto";
  /** For GDPVal rows, in place of ours. */
  promptTemplate?: PromptTemplate;
  /** For the files that GDPVal rows name. */
  referenceFiles?: ReferenceFiles;
}

/** One row of the task file: what it asks for, or everything that is wrong with it. */
export type TaskRow = GoodRow | BadRow;
interface GoodRow {
  ok: true;
  line: number;
  taskId: string;
  identity: RowIdentity;
  /** One for each repeat. */
  activations: SessionActivation[];
  /** As it was written, with all of its fields; null for a row of ours, which is an activation and may hold secrets. */
  foreign: Row | null;
  /** What a resources server is given of it: a foreign row whole, of one of ours its `task_data`. */
  forServer: Row;
  /** Files that the row names; `inputs` are they, measured, only when they were read. */
  references: Reference[];
  inputs: LocalCopy[];
}

/**
 * `check` looks at the files that a row names without reading them: then the activations are complete but for their bytes or
 * sha256. `read` reads local files of our own rows and fetches those that GDPVal rows name.
 */
export type ReadMode = "check" | "read";

/** The format that a task file is read in. Throws RollcallError "tasks_unreadable". */
async function formatOf({ path, format = "auto" }: TaskSource): Promise<FileFormat> {
  await requireRegularFile(path);
  return format === "auto" ? detectFormat(path, MAX_ROW_BYTES) : { format, seen: null, given: true };
}

/**
 * Reads a task file row by row, in its order. Throws RollcallError "tasks_unreadable". `whole` sees all of the file's bytes and rows, also
 * those behind a limit.
 */
export async function* readTasks(
  source: TaskSource,
  files: ReadMode,
  whole?: { chunk: (chunk: Buffer) => void; row: (identity: RowIdentity) => void },
): AsyncGenerator<TaskRow> {
  const format = await formatOf(source);
  const lineOf = new Map<string, number>();
  let rows = 0;
  for await (const line of readLines(source.path, MAX_ROW_BYTES, whole?.chunk)) {
    const text = decodeLine(line.bytes);
    if (text !== null && text.trim() === "") continue;
    const isBehindLimit = source.limit !== undefined && rows >= source.limit;
    if (isBehindLimit && whole === undefined) return;
    const identity = rowIdentity(text ?? `${line.length} bytes`);
    whole?.row(identity);
    if (isBehindLimit) continue;
    rows++;
    if (line.tooLong) {
      const message = `the line has more than ${MAX_ROW_BYTES} bytes`;
      const accepted = `at most ${MAX_ROW_BYTES}; name larger files by "from"`;
      yield { ok: false, line: line.number, taskId: null, problems: [{ code: "line_too_long", path: "", message, accepted }] };
    } else if (text === null) {
      yield { ok: false, line: line.number, taskId: null, problems: [notARow("it is not UTF-8 text")] };
    } else {
      yield withoutDuplicates(await readRow(source, { line: line.number, index: rows - 1, text, identity, format }, files), lineOf);
    }
  }
}

/** Missing only because the task's id, from which they are made, is missing or wrong: that is what gets told. */
const DERIVED_FIELDS = new Set(["activation_id", "episode_id"]);

interface RowText {
  line: number;
  /** Among the rows, from 0. */
  index: number;
  text: string;
  identity: RowIdentity;
  format: FileFormat;
}

async function readRow(source: TaskSource, { line, index, text, identity, format: file }: RowText, files: ReadMode): Promise<TaskRow> {
  const parsed = parseRow(text);
  if ("problem" in parsed) return { ok: false, line, taskId: null, problems: [parsed.problem] };
  const taskId = rowTaskId(parsed.row);
  const bad = (problems: RowProblem[]): TaskRow => ({ ok: false, line, taskId, problems });
  const mixed = formatProblem(parsed.row, file);
  if (mixed !== null) return bad([mixed]);

  const spelt = await spellOut(source, parsed.row, index, file.format, files);
  if (spelt.raw === null) return bad(spelt.problems);
  const { raw, problems, inputs } = spelt;
  if (raw["run_id"] !== undefined && raw["run_id"] !== source.runId) {
    problems.push({ code: "run_id_foreign", path: "run_id", message: "it names another run", accepted: `nothing, or ${source.runId}` });
  }
  if (source.repeats > 1 && (raw["activation_id"] !== undefined || raw["episode_id"] !== undefined)) {
    const message = "a row that names its own ids cannot be repeated";
    problems.push({ code: "repeats_with_ids", path: "", message, accepted: "no activation_id and episode_id, or --repeats 1" });
  }
  const foreign = file.format === "rollcall" ? null : parsed.row;
  const data = foreign === null ? dataForServer(parsed.row) : { data: foreign };
  if ("problem" in data) problems.push(data.problem);
  const activations: SessionActivation[] = [];
  for (let repeat = 0; repeat < source.repeats; repeat++) {
    const admission = admit(namedRepeat(raw, source, repeat), source.policy);
    if (!admission.accepted) {
      problems.push(...admission.refusals.filter(({ path }) => taskId !== null || !DERIVED_FIELDS.has(path)));
      break; // the repeats differ only in their ids
    }
    const { activation } = admission;
    activations.push({ ...activation, tool_grants: overlayGrants(source.toolGrants, activation.tool_grants) });
  }
  const [first] = activations;
  if (problems.length === 0 && first !== undefined && "data" in data) {
    const forServer = withCreateParams(data.data, first);
    const { references } = spelt;
    return { ok: true, line, taskId: first.task_id.task_id, identity, activations, foreign, forServer, references, inputs };
  }
  return bad(problems.map((problem) => ({ ...problem, path: spelt.pathOf(problem.path) })));
}

/** The ids of one repeat. All repeats get a suffix, so that no task's own name can equal another one's repeat. */
function namedRepeat(raw: Row, source: Pick<TaskSource, "runId" | "repeats">, repeat: number): Row {
  const derived = withDerivedIds(raw, source.runId);
  if (source.repeats === 1) return derived;
  const task = raw["task_id"];
  const taskId = isRow(task) && typeof task["task_id"] === "string" ? task["task_id"] : "";
  return {
    ...derived,
    episode_id: { rollout_id: `${safeName(taskId)}-r${repeat}` },
    activation_id: `${String(derived["activation_id"])}-r${repeat}`,
  };
}

/** Two rows must not share an activation, nor a rollout: its name is the route of their model calls. */
function withoutDuplicates(row: TaskRow, lineOf: Map<string, number>): TaskRow {
  if (!row.ok) return row;
  const names = row.activations.flatMap((activation) => [`a:${activation.activation_id}`, `r:${captureKey(activation.episode_id)}`]);
  const first = names.map((name) => lineOf.get(name)).find((line) => line !== undefined);
  if (first === undefined) {
    for (const name of names) lineOf.set(name, row.line);
    return row;
  }
  const message = `the id ${JSON.stringify(row.taskId.slice(0, 80))} is already that of line ${first}`;
  const problem = { code: "duplicate_id", path: "id", message, accepted: "ids that differ; for several rollouts of a task use --repeats" };
  return { ok: false, line: row.line, taskId: row.taskId, problems: [problem] };
}

async function requireRegularFile(path: string): Promise<void> {
  let reason: string | null = null;
  try {
    if (!(await stat(path)).isFile()) reason = "it is not a regular file (it is read twice, so a pipe or a directory will not do)";
  } catch (error) {
    reason = hasErrno(error, "ENOENT") ? "there is no such file" : messageOf(error);
  }
  if (reason !== null) throw new RollcallError("tasks_unreadable", `cannot read the task file ${path}: ${reason}`);
}

/** Bad rows that are listed one by one. */
const MAX_LISTED = 1_000;

/** What one look through the whole task file found; nothing was queued. */
export interface TaskCheck {
  /** Of all bytes of the file, also those behind a limit. */
  sha256: string;
  /** Of what its rows ask for, in their order, also behind a limit: the same however they are written. */
  rowsSha256: string;
  rows: number;
  badRows: number;
  /** The first {@link MAX_LISTED} of them. */
  bad: BadRow[];
  /** Activation ids of the usable rows, in their order. */
  ids: string[];
  /** Of the bad rows, should they be recorded as refused. */
  refusedIds: string[];
  /** What the usable rows need of this machine. */
  modelUrls: Set<string>;
  keyVariables: Set<string>;
  /** Where the key of each variable is to be sent, as the rows name it. */
  keyUses: Map<string, { variable: string; url: string }>;
  format: RowFormat;
  /** Files that the usable rows name, each time it is named. */
  references: number;
  /** What is worth a word although it can be run; each once. */
  warnings: Set<string>;
}

/** Checks the whole file before anything of it runs. Throws RollcallError "tasks_unreadable". */
export async function checkTasks(source: TaskSource, files: ReadMode = "check"): Promise<TaskCheck> {
  const { format } = await formatOf(source);
  const digest = createHash("sha256");
  const rowsDigest = createHash("sha256");
  const whole = {
    chunk: (chunk: Buffer) => void digest.update(chunk),
    row: ({ sha256 }: RowIdentity) => void rowsDigest.update(sha256),
  };
  const check: Omit<TaskCheck, "sha256" | "rowsSha256"> = {
    rows: 0,
    badRows: 0,
    bad: [],
    ids: [],
    refusedIds: [],
    modelUrls: new Set(),
    keyVariables: new Set(),
    keyUses: new Map(),
    format,
    references: 0,
    warnings: new Set(),
  };
  for await (const row of readTasks(source, files, whole)) {
    check.rows++;
    if (!row.ok) {
      check.badRows++;
      check.refusedIds.push(...refusedNames(row, source).map(({ activation_id }) => activation_id));
      if (check.bad.length < MAX_LISTED) check.bad.push(row);
    } else {
      check.references += row.references.length;
      for (const warning of row.activations.slice(0, 1).flatMap(shortSecretWarnings)) check.warnings.add(warning);
      for (const { activation_id, model } of row.activations) {
        check.ids.push(activation_id);
        if (model.base_url !== undefined) check.modelUrls.add(model.base_url);
        if (model.api_key !== undefined || model.api_key_env === undefined) continue;
        check.keyVariables.add(model.api_key_env);
        const use = { variable: model.api_key_env, url: modelBaseUrl(model, "preflight") };
        check.keyUses.set(`${use.variable} ${new URL(use.url).origin}`, use);
      }
    }
  }
  return { ...check, sha256: digest.digest("hex"), rowsSha256: rowsDigest.digest("hex") };
}

/** Every bad row with every reason, for people. */
export function describeBadRows(path: string, check: TaskCheck): string {
  if (isPrettyPrinted(check))
    return `${path} is JSON over several lines; a task file has one task on each line. \`jq -c 'if type == "array" then .[] else . end' ${path} > tasks.jsonl\` makes one`;
  const lines = check.bad.flatMap(({ line, taskId, problems }) => {
    const name = taskId === null ? "" : ` (id ${JSON.stringify(taskId.length > 60 ? `${taskId.slice(0, 60)}...` : taskId)})`;
    return problems.map(
      ({ path, message, accepted }) => `  line ${line}${name}: ${path === "" ? "" : `${path}: `}${message}; accepted: ${accepted}`,
    );
  });
  if (check.badRows > check.bad.length) lines.push(`  and ${check.badRows - check.bad.length} more`);
  return `${path}: ${check.badRows} of ${check.rows} rows cannot be run:\n${lines.join("\n")}`;
}

/** A row that was pasted as an editor formats it: each of its lines is a bad row for the same reason. */
function isPrettyPrinted({ bad, rows, badRows }: TaskCheck): boolean {
  return (
    badRows === rows &&
    bad[0]?.line === 1 &&
    bad.every(({ problems }) => problems[0]?.code === "not_jsonl") &&
    bad[0].problems[0]!.message === PART_OF_JSON
  );
}
