// SPDX-License-Identifier: Apache-2.0
import { OFFICE_SERVER } from "../../examples/stand-ins/office-jobs/job.ts";
import { mcp, say, scriptLine, shell, step, type Item, type Script } from "../../examples/stand-ins/script.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import type { TaskKind } from "./facts.ts";
import { randomFrom } from "./schedule.ts";

export interface ChaosTask {
  task_id: string;
  kind: TaskKind;
  max_attempts: number;
  /** A whole activation but for the ids that follow from the task's. */
  row: Record<string, unknown>;
}

export interface ChaosTaskParts {
  seed: number;
  count: number;
  officeUrl: string;
  /** Of a tool server that is down. */
  downUrl: string;
  mintToken: (sessionId: string) => string;
  /** A secret of the task's own, with the characters that escapes change. */
  canaryOf: (taskId: string) => string;
}

const GENEROUS = 10;
/** One retry is enough to be seen. */
const WHEN_DOWN = 2;
/** Long enough for a start of Codex on a busy machine, which would be another failure. */
const TIME_LIMIT_SECONDS = 20;
/** Of these, every so many tasks one. */
const EVERY = 11;

/** Tasks that differ, the same for the same seed but for their secrets: 2 to 6 model calls, commands, files, a finish call over MCP. */
export function chaosTasks({ seed, count, ...parts }: ChaosTaskParts): ChaosTask[] {
  const random = randomFrom(seed ^ 0x7a5c5);
  return Array.from({ length: count }, (_, index) => {
    const kind: TaskKind = index % EVERY === 5 ? "server_down" : index % EVERY === 8 ? "times_out" : "works";
    const task_id = `chaos-${String(index + 1).padStart(3, "0")}`;
    const max_attempts = kind === "server_down" ? WHEN_DOWN : GENEROUS;
    const url = kind === "server_down" ? parts.downUrl : parts.officeUrl;
    const headers = { [SESSION_TOKEN_HEADER]: parts.mintToken(task_id), "X-Chaos-Canary": parts.canaryOf(task_id) };
    const row = {
      task_id: { taskset: "chaos", task_id },
      input: `Write a report about ${task_id}.\n${scriptLine(scriptFor(kind, random))}`,
      tool_grants: [{ type: "mcp", name: OFFICE_SERVER, required: true, connection: { transport: "streamable_http", url, headers } }],
      required_tools: ["finish"],
      max_attempts,
      reply_to: RESULTS_QUEUE,
      outputs: { paths: ["*.md"] },
      ...(kind === "times_out" ? { codex: { timeout_seconds: TIME_LIMIT_SECONDS } } : {}),
    };
    return { task_id, kind, max_attempts, row };
  });
}

export const RESULTS_QUEUE = "results-chaos";

function scriptFor(kind: TaskKind, random: () => number): Script {
  const commands = Array.from({ length: Math.floor(random() * 5) }, () => COMMANDS[Math.floor(random() * COMMANDS.length)]!);
  const delay_ms = 150 + Math.floor(random() * 500);
  const slow = kind === "times_out" ? [shell("sleep 300")] : [];
  const hand_in = mcp(OFFICE_SERVER, "finish", { reason: "The report is written.", paths: ["{{workdir}}/report.md"] });
  const items: Item[] = [...commands.map((command) => shell(command)), ...slow, hand_in, say("The report is written.")];
  return { steps: items.map((item) => ({ ...step(item), delay_ms })) };
}

/** The third shows the session's own token, as a careless model would. */
const COMMANDS = [
  'echo "one more line" >> report.md && wc -l report.md',
  "seq 1 400 | tee numbers.txt | tail -3",
  "cat $CODEX_HOME/config.toml ~/.codex/config.toml 2>/dev/null; cat /proc/self/environ | tr '\\0' '\\n'",
  "sleep 0.7; mkdir -p notes && date > notes/date.txt && cp notes/date.txt report.md",
] as const;
