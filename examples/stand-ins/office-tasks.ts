// SPDX-License-Identifier: Apache-2.0
import { FINANCE_JOBS } from "./office-jobs/finance.ts";
import { finish, OFFICE_SERVER, type OfficeJob } from "./office-jobs/job.ts";
import { OPERATIONS_JOBS } from "./office-jobs/operations.ts";
import { PEOPLE_JOBS } from "./office-jobs/people.ts";
import { TROUBLE_JOBS } from "./office-jobs/trouble.ts";
import { say, scriptLine, shell, step, type Script } from "./script.ts";
import { SESSION_TOKEN_HEADER } from "./session-tokens.ts";

const JOBS: readonly OfficeJob[] = [...FINANCE_JOBS, ...PEOPLE_JOBS, ...OPERATIONS_JOBS, ...TROUBLE_JOBS];

/** Attempts for the task whose server is down: one retry is enough to be seen. */
const ATTEMPTS_WHEN_DOWN = 2;

export interface ToolServers {
  /** Of the office tools. */
  mcpUrl: string;
  mintToken: (sessionId: string) => string;
}

/** A row of a task file in the short form. */
export type TaskRow = Record<string, unknown> & { id: string };

export interface OfficeTasksOptions extends ToolServers {
  /** Of a server that is down. */
  brokenUrl: string;
  /** Default 20, all there are; more repeat them under new ids. */
  count?: number;
  /** Default true; false for a real model, which must not find the solution in its prompt. */
  scripts?: boolean;
}

/** The quickstart's task file: office work, each task with a token of its own, two of them in trouble. Pure but for the tokens. */
export function officeTasks({ mcpUrl, mintToken, brokenUrl, count = JOBS.length, scripts = true }: OfficeTasksOptions): TaskRow[] {
  return numbered(count).map(({ id, job }) => ({
    id,
    input: promptFor(job, scripts),
    tool_grants: [
      grant(OFFICE_SERVER, mcpUrl, mintToken(id)),
      ...(job.trouble === "server_down" ? [grant("archive", brokenUrl, mintToken(id))] : []),
      ...(job.trouble === "refused_grant" ? [{ type: "direct_http", name: "crm", required: true, base_url: "https://crm.example" }] : []),
    ],
    files: job.files,
    required_tools: ["finish"],
    ...(job.trouble === "server_down" ? { max_attempts: ATTEMPTS_WHEN_DOWN } : {}),
    metadata: { department: job.department },
  }));
}

export interface ExpectedOutcome {
  id: string;
  status: "completed" | "failed" | "refused";
  /** Of the failure; null when there is none. */
  cause_code: string | null;
  attempts: number;
  /** Model calls of the last attempt, Codex's retries not counted. */
  min_model_calls: number;
  /** MCP tools called, each at least once, sorted. */
  tools: string[];
  /** Names of the files handed in through finish. */
  deliverables: string[];
}

/** How each of these tasks ends when the stand-in plays the model. Pure. */
export function expectedOutcomes(count = JOBS.length): ExpectedOutcome[] {
  return numbered(count).map(({ id, job }) => {
    if (job.trouble === "refused_grant") return without(id, "refused", "grant_required_direct_http", 0);
    if (job.trouble === "server_down") return without(id, "failed", "mcp_server_unreachable", ATTEMPTS_WHEN_DOWN);
    const items = job.steps.flatMap(({ reply }) => reply);
    return {
      id,
      status: "completed",
      cause_code: null,
      attempts: 1,
      min_model_calls: job.steps.length,
      tools: [...new Set(items.flatMap((item) => ("mcp" in item ? [item.mcp.tool] : [])))].sort(),
      deliverables: job.deliverables,
    };
  });
}

/**
 * `count` plain tasks for load: each makes exactly `modelCalls` calls of the model, all but the last with a shell command. With tool
 * servers the last command is a finish call.
 */
export function tasks(count: number, { modelCalls, servers }: { modelCalls: number; servers?: ToolServers }): TaskRow[] {
  const commands = numberedFrom(1, modelCalls - 1).map((call) => step(shell(`echo "entry ${call}" >> journal.txt`)));
  if (servers !== undefined && commands.length > 0)
    commands.splice(-1, 1, finish("The journal is written.", ...(modelCalls > 2 ? ["journal.txt"] : [])));
  const script: Script = { steps: [...commands, step(say("The journal is written."))] };
  return numberedFrom(1, count).map((number) => {
    const id = `load-${String(number).padStart(4, "0")}`;
    return {
      id,
      input: `Keep a journal of your work in journal.txt.\n${scriptLine(script)}`,
      ...(servers === undefined
        ? {}
        : { tool_grants: [grant(OFFICE_SERVER, servers.mcpUrl, servers.mintToken(id))], required_tools: ["finish"] }),
    };
  });
}

function promptFor(job: OfficeJob, scripts: boolean): string {
  const names = job.deliverables.map((name) => `/workspace/${name}`).join(", ");
  return [
    job.request,
    "",
    "You work in /workspace. Rely on the files there and on the office tools (web_search, fetch_web_page), not on memory.",
    `When everything is written, call the tool finish once, with a short reason and these absolute paths: ${names}.`,
    ...(scripts ? ["", scriptLine({ steps: job.steps })] : []),
  ].join("\n");
}

function grant(name: string, url: string, token: string): object {
  const headers = { [SESSION_TOKEN_HEADER]: token };
  return { type: "mcp", name, required: true, connection: { transport: "streamable_http", url, headers } };
}

function without(id: string, status: "failed" | "refused", causeCode: string, attempts: number): ExpectedOutcome {
  return { id, status, cause_code: causeCode, attempts, min_model_calls: 0, tools: [], deliverables: [] };
}

function numbered(count: number): { id: string; job: OfficeJob }[] {
  return numberedFrom(0, count).flatMap((index) => {
    const job = JOBS[index % JOBS.length];
    const round = Math.floor(index / JOBS.length);
    return job === undefined ? [] : [{ id: round === 0 ? job.id : `${job.id}-${round + 1}`, job }];
  });
}

function numberedFrom(first: number, count: number): number[] {
  return Array.from({ length: Math.max(0, count) }, (_, index) => first + index);
}
