// SPDX-License-Identifier: Apache-2.0
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import { scriptLine } from "../../examples/stand-ins/script.ts";
import { exactProfile } from "../../src/codex/profile.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { rollcall } from "./command.ts";
import type { MatrixModel } from "./models.ts";
import type { Grant, Scenario } from "./scenario.ts";
import type { Servers } from "./servers.ts";

/** One scenario with one model. */
export interface Session {
  id: string;
  scenario: Scenario;
  model: MatrixModel;
  /** Its place in the report; those that wait are begun first. */
  order: number;
}

export interface VersionRun {
  sessions: Session[];
  /** By session id; absent for a session that has none. */
  results: Map<string, ActivationResult>;
  /** summary.json; null when the command did not get there. */
  summary: { usage: { input_tokens: number; output_tokens: number } } | null;
  /** What the command ended with, and the end of what it said. */
  ended: { code: number | null; said: string };
  seconds: number;
}

export const GRANTS: readonly Grant[] = [{ name: "office" }, { name: "archive" }];

/** Each scenario with each model of a kind that it is meant for; those that wait first. Pure. */
export function sessionsOf(scenarios: readonly Scenario[], models: readonly MatrixModel[], version: string): Session[] {
  const pairs = scenarios.flatMap((scenario, index) =>
    models
      .filter(({ kind }) => scenario.kinds.includes(kind))
      .map((model) => ({ id: `${version}-${index + 1}-${model.name}`.replaceAll(/[^A-Za-z0-9-]+/g, "_"), scenario, model })),
  );
  const all = pairs.map((pair, order) => ({ ...pair, order }));
  return [...all.filter(({ scenario }) => scenario.slow), ...all.filter(({ scenario }) => !scenario.slow)];
}

/** All sessions of one version by one `rollcall run`, with the real Redis and sandboxes that it starts. `dir` is empty and stays. */
export async function runVersion(
  sessions: Session[],
  {
    version,
    codexBin,
    servers,
    dir,
    concurrency,
  }: { version: string; codexBin: string; servers: Servers; dir: string; concurrency: number },
): Promise<VersionRun> {
  await mkdir(join(dir, "run"), { recursive: true, mode: 0o700 });
  const rows = await Promise.all(sessions.map((session) => rowOf(session, servers)));
  const [tasks, config, out] = [join(dir, "tasks.jsonl"), join(dir, "rollcall.toml"), join(dir, "out")];
  await writeFile(tasks, rows.map((row) => `${JSON.stringify(row)}\n`).join(""), { mode: 0o600 });
  await writeFile(config, settingsOf(version, codexBin));
  const began = performance.now();
  const options = ["--config", config, "--concurrency", String(concurrency), "--skip-invalid", "--retry", "none", "--probe", "0"];
  const ended = await rollcall(["run", tasks, "--out", out, ...options], {
    XDG_STATE_HOME: join(dir, "state"),
    XDG_RUNTIME_DIR: join(dir, "run"),
    OPENAI_API_KEY: servers.modelKey,
  });
  const lines = existsSync(join(out, "results.jsonl")) ? readFileSync(join(out, "results.jsonl"), "utf8").split("\n").filter(Boolean) : [];
  const results = lines.map((line) => JSON.parse(line) as ActivationResult);
  const summary = join(out, "summary.json");
  return {
    sessions,
    results: new Map(results.map((result) => [result.task_id.task_id, result])),
    summary: existsSync(summary) ? (JSON.parse(readFileSync(summary, "utf8")) as VersionRun["summary"]) : null,
    ended,
    seconds: (performance.now() - began) / 1_000,
  };
}

async function rowOf({ id, scenario, model }: Session, servers: Servers): Promise<Record<string, unknown>> {
  const grants = scenario.grants ?? GRANTS;
  return {
    task_id: { taskset: "codex-matrix", task_id: id },
    input: `Do the work.\n${scriptLine(scenario.script)}`,
    tool_grants: grants.map(({ name, server = name, required = true }) => ({
      type: "mcp",
      name,
      required,
      connection: {
        transport: "streamable_http",
        url: servers.toolServer(server),
        headers: { [SESSION_TOKEN_HEADER]: servers.token(id) },
      },
    })),
    required_tools: scenario.required_tools ?? (grants.some(({ name }) => name === "office") ? ["finish"] : []),
    model: { name: model.name, base_url: await servers.modelServer(scenario.model_server ?? "works") },
    codex: { timeout_seconds: 60, ...scenario.codex },
    max_attempts: scenario.max_attempts ?? 1,
    reply_to: null,
  };
}

/** Every session fails for itself, and what is tried again comes soon. */
function settingsOf(version: string, codexBin: string): string {
  return `key_origins = { OPENAI_API_KEY = ["*"] }
codex_version = "${version}"
codex_bin = "${codexBin}"
[breaker]
mode = "off"
[retry]
base_seconds = 1
max_seconds = 2
[limiter]
grow_seconds = 1
[floors]
disk_mb = 0
memory_mb = 0
${exactProfile(version) === null ? '[codex]\nunknown_version = "try"\n' : ""}`;
}
