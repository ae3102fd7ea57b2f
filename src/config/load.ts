// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import TOML from "@iarna/toml";
import { z } from "zod";
import { DEFAULT_MODEL_URL, modelOrigin, type KeyOrigins } from "../contract/key-origins.ts";
import type { AdmissionPolicy } from "../contract/refusals.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { nearest } from "./nearest.ts";
import { nonEmpty, secretVariable, type Environment } from "./secret-variable.ts";
import { settingMeta } from "./setting.ts";
import { settingsSchema, type Settings } from "./settings.ts";

export type { Environment } from "./secret-variable.ts";
type Table = Record<string, unknown>;

export interface SettingsSource {
  env: Environment;
  /** Path of a rollcall.toml that must exist; null = none. */
  file: string | null;
  /** Nested like the file, e.g. from flags; undefined values are not given. They win over variables, those over the file. */
  overrides?: Table;
}

/**
 * Reads and checks all settings. Throws RollcallError "settings_invalid" that lists every problem, "settings_unreadable", or what
 * {@link secretVariable} throws.
 */
export async function loadSettings({ env: given, file, overrides = {} }: SettingsSource): Promise<Settings> {
  const env = { ...given, REDIS_URL: await secretVariable(given, "REDIS_URL") };
  const merged = mergeTables(mergeTables(file === null ? {} : await readToml(file), fromEnvironment(env)), overrides);
  const parsed = settingsSchema.safeParse({ state_dir: defaultStateDir(env), ...merged });
  if (!parsed.success) {
    const problems = parsed.error.issues.flatMap(describeIssue);
    throw new RollcallError(
      "settings_invalid",
      `settings cannot be used${file === null ? "" : ` (file ${file})`}:\n${problems.join("\n")}`,
    );
  }
  const { artifacts_dir, artifacts = artifacts_dir, ...settings } = parsed.data;
  const redis_url = withPassword(settings.redis_url, await secretVariable(env, "REDIS_PASSWORD"));
  return { ...settings, redis_url, artifacts, secret_key: await secretVariable(env, "ROLLCALL_SECRET_KEY") };
}

/** Kept apart from the URL, which then is no secret. */
function withPassword(url: string | undefined, password: string | undefined): string | undefined {
  if (url === undefined || password === undefined) return url;
  const complete = new URL(url);
  if (complete.password !== "") {
    throw new RollcallError("secret_given_twice", "REDIS_PASSWORD is set, and REDIS_URL holds a password too: take it out of the URL");
  }
  complete.password = encodeURIComponent(password);
  return complete.href;
}

/** What these settings let a row ask for. */
export function admissionPolicy(settings: Settings): Required<AdmissionPolicy> {
  return {
    allow_providers: [...new Set([settings.sandbox.provider, ...settings.allow_providers])],
    allow_key_env: keyVariables(settings),
    key_origins: keyOrigins(settings),
  };
}

/** Whoever says where the key of a variable may go lets rows name it. */
function keyVariables({ model, allow_key_env, key_origins }: Settings): string[] {
  return [...new Set([model.api_key_env, ...allow_key_env, ...Object.keys(key_origins)])];
}

/** Where nothing is said of a variable, its key goes where the configured model is; that model's own goes there in any case. */
function keyOrigins(settings: Settings): KeyOrigins {
  const { model, key_origins: given } = settings;
  const configured = modelOrigin(model.base_url ?? DEFAULT_MODEL_URL)!;
  return Object.fromEntries(
    keyVariables(settings).map((name) => {
      const origins = given[name] ?? [];
      return [name, origins.length === 0 || name === model.api_key_env ? [...new Set([configured, ...origins])] : origins];
    }),
  );
}

async function readToml(file: string): Promise<Table> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const reason = hasErrno(error, "ENOENT") ? "there is no such file" : messageOf(error);
    throw new RollcallError("settings_unreadable", `cannot read the settings file ${file}: ${reason}`, { cause: error });
  }
  try {
    return TOML.parse(text);
  } catch (error) {
    // The parser's message quotes the lines around the fault, and those may hold a header value: only the place is told.
    const line = error instanceof Error && "line" in error && typeof error.line === "number" ? `, line ${error.line + 1}` : "";
    throw new RollcallError("settings_unreadable", `the settings file ${file} is not TOML${line}`);
  }
}

/** Settings that have a variable, as a table shaped like the file. An empty variable counts as not set. */
function fromEnvironment(env: Environment): Table {
  const table: Table = {};
  for (const { path, schema } of leaves(settingsSchema.shape, [])) {
    const name = settingMeta(schema)?.env;
    const value = name === undefined ? undefined : nonEmpty(env[name]);
    if (value === undefined) continue;
    const parent = path.slice(0, -1).reduce<Table>((inner, key) => (inner[key] ??= {}) as Table, table);
    parent[path.at(-1)!] = value;
  }
  return table;
}

/** Every documented setting with its place in the file. */
export function* leaves(
  shape: Readonly<Record<string, z.ZodType>>,
  path: readonly string[],
): Generator<{ path: readonly string[]; schema: z.ZodType }> {
  for (const [key, schema] of Object.entries(shape)) {
    const inner = tableShape(schema);
    if (inner === null) yield { path: [...path, key], schema };
    else yield* leaves(inner, [...path, key]);
  }
}

/** The settings inside a `[table]`; null for a setting. */
function tableShape(schema: z.ZodType): Record<string, z.ZodType> | null {
  const inner = schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
  return inner instanceof z.ZodObject ? inner.shape : null;
}

function describeIssue(issue: z.core.$ZodIssue): string[] {
  const path = issue.path.map(String);
  if (issue.code !== "unrecognized_keys") return [`  ${path.join(".")}: ${issue.message}`];
  const known = knownKeys(path);
  return issue.keys.map((key) => {
    const meant = nearest(key, known);
    const hint =
      meant === null ? (known.length > 0 ? `known here: ${known.join(", ")}` : "see docs/settings.md") : `did you mean ${meant}?`;
    return `  ${[...path, key].join(".")}: there is no such setting; ${hint}`;
  });
}

function knownKeys(path: readonly string[]): string[] {
  let shape: Record<string, z.ZodType> | null = settingsSchema.shape;
  for (const key of path) {
    const next: z.ZodType | undefined = shape?.[key];
    shape = next === undefined ? null : tableShape(next);
  }
  return shape === null ? [] : Object.keys(shape);
}

/** `over` wins; tables are merged, everything else is replaced. */
function mergeTables(under: Table, over: Table): Table {
  const merged: Table = { ...under };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const below = merged[key];
    merged[key] = isTable(below) && isTable(value) ? mergeTables(below, value) : value;
  }
  return merged;
}

function isTable(value: unknown): value is Table {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function defaultStateDir(env: Environment): string {
  const base = nonEmpty(env["XDG_STATE_HOME"]) ?? join(nonEmpty(env["HOME"]) ?? homedir(), ".local", "state");
  return join(base, "rollcall");
}
