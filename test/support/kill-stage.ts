// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { OFFICE_SERVER } from "../../examples/stand-ins/office-jobs/job.ts";
import { startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import type { FleetParts } from "../../scripts/chaos/fleet.ts";
import { copyProgram } from "../../scripts/chaos/guards.ts";
import { startChaosModel, type ChaosModel } from "../../scripts/chaos/model.ts";
import { insertKillPoints } from "./insert-kill-points.ts";
import { startTestRedis, type TestRedis } from "./redis.ts";

/** Everything around the program whose processes are killed. */
export interface KillStage {
  root: string;
  at: (name: string) => string;
  /** The copy of the program. */
  dist: string;
  model: ChaosModel;
  redis: TestRedis;
  /** What must be found nowhere. */
  secrets: string[];
  fleet: Pick<FleetParts, "dist" | "env" | "workerArgs" | "producerArgs">;
}

const DIST = fileURLToPath(new URL("../../dist/", import.meta.url));
/** Where the results are delivered. */
export const RESULTS = "results-kill";
const MODEL_KEY = "stand-in-key-of-the-kill-points";
/** Short, so that what a killed worker held is soon another's; long enough for a busy machine. */
const SETTINGS = `[queue]
lock_duration_ms = 3000
lock_renew_ms = 700
stalled_interval_ms = 500
[breaker]
mode = "off"
[floors]
disk_mb = 0
memory_mb = 0
`;

/** Files and servers that the run needs. `undo` gets what takes each away again, also when this throws. */
export async function openKillStage(
  names: readonly string[],
  change: ((dist: string) => void) | null,
  undo: (() => unknown)[],
): Promise<KillStage> {
  const root = await mkdtemp(join(tmpdir(), "rollcall-kill-"));
  undo.push(() => rm(root, { recursive: true, force: true }));
  const at = (name: string): string => join(root, name);
  for (const name of ["program", "state", "run", "tmp"]) mkdirSync(at(name), { mode: 0o700 });
  const dist = await copyProgram(DIST, at("program"));
  insertKillPoints(dist);
  change?.(dist);

  const model = await startChaosModel(MODEL_KEY);
  undo.push(() => model.close());
  const office = await startOfficeTools();
  undo.push(() => office.close());
  const redis = await startTestRedis({ tcp: { password: "pw-of-the-kill-points" } });
  undo.push(() => redis.stop());
  if (redis.target.kind !== "url") throw new Error("the workers are told of Redis by URL");
  const tokens = names.map((name) => office.mintToken(name));
  writeFileSync(at("tasks.jsonl"), names.map((name, index) => `${JSON.stringify(rowOf(name, office.url, tokens[index]!))}\n`).join(""));
  writeFileSync(at("rollcall.toml"), SETTINGS);

  const config = ["--config", at("rollcall.toml")];
  const fleet = {
    dist,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: "/nonexistent",
      REDIS_URL: redis.target.url,
      ROLLCALL_SECRET_KEY: randomBytes(32).toString("base64"),
      ROLLCALL_ARTIFACTS_DIR: at("artifacts"),
      XDG_STATE_HOME: at("state"),
      XDG_RUNTIME_DIR: at("run"),
      TMPDIR: at("tmp"),
      OPENAI_API_KEY: MODEL_KEY,
      ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
    },
    workerArgs: [...config, "--concurrency", "1"],
    producerArgs: [
      at("tasks.jsonl"),
      ...config,
      "--out",
      at("out"),
      "--model",
      "stand-in",
      "--model-base-url",
      model.captureBaseUrl,
      "--retry",
      "none",
      "--probe",
      "0",
    ],
  };
  return { root, at, dist, model, redis, secrets: [MODEL_KEY, ...tokens], fleet };
}

/** A task with a command, a deliverable and a tool call of its own; without a deliverable it would not be told from one that did nothing. */
function rowOf(name: string, url: string, token: string): object {
  const steps = [
    step(shell(`echo ${name} > report.md`)),
    step(mcp(OFFICE_SERVER, "finish", { reason: "The report is written.", paths: ["{{workdir}}/report.md"] })),
    step(say("The report is written.")),
  ];
  return {
    task_id: { taskset: "kill", task_id: name },
    input: `Write a report.\n${scriptLine({ steps })}`,
    tool_grants: [
      {
        type: "mcp",
        name: OFFICE_SERVER,
        required: true,
        connection: { transport: "streamable_http", url, headers: { [SESSION_TOKEN_HEADER]: token } },
      },
    ],
    required_tools: ["finish"],
    max_attempts: 5,
    reply_to: RESULTS,
    outputs: { paths: ["*.md"] },
  };
}
