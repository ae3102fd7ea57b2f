// SPDX-License-Identifier: Apache-2.0
import { setTimeout as sleep } from "node:timers/promises";
import { findCgroups } from "../../../src/sandbox/find-cgroups.ts";
import { fileChecks } from "./files.ts";
import { isolationChecks } from "./isolation.ts";
import { limitChecks } from "./limits.ts";
import { beVictim, reapingChecks } from "./reaping.ts";
import { runningChecks } from "./running.ts";
import { Context, start, type Check, type Setting } from "./setting.ts";

/** Everything that a provider is checked for, by the worker process that this file is when it is run. */
export const CHECKS: Check[] = [
  ...runningChecks,
  ...fileChecks,
  ...isolationChecks.map((check) => ({ ...check, only: "bubblewrap" as const })),
  ...limitChecks.map((check) => ({ ...check, only: "bubblewrap" as const, needsCgroups: true })),
  ...reapingChecks,
];

/** One line on stdout for each check. */
export interface Verdict {
  title: string;
  /** Null = passed. */
  error: string | null;
}

export function applies({ only, needsRoot }: Check, provider: Setting["provider"], root: boolean): boolean {
  return (only === undefined || only === provider) && (needsRoot !== true || (root && provider === "bubblewrap"));
}

async function runChecks(setting: Setting): Promise<void> {
  const hasCgroups = (await findCgroups()) !== null;
  const checks = CHECKS.filter((check) => applies(check, setting.provider, process.getuid?.() === 0));
  for (const check of checks.filter(({ needsCgroups }) => needsCgroups !== true || hasCgroups)) {
    const context = new Context(setting);
    let error: string | null = null;
    try {
      await check.run(context);
    } catch (thrown) {
      error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    }
    await context.close().catch((thrown: unknown) => {
      error ??= `cleanup: ${String(thrown)}`;
    });
    process.stdout.write(`${JSON.stringify({ title: check.title, error } satisfies Verdict)}\n`);
  }
}

/** Dies by SIGKILL `delayMs` after it started a command. */
async function dieDuringLaunch(setting: Setting, mark: string, delayMs: number): Promise<void> {
  start(await new Context(setting).open(), ["/bin/sleep", mark]);
  if (delayMs > 0) await sleep(delayMs);
  process.kill(process.pid, "SIGKILL");
}

const [, , text, mark] = process.argv;
if (text?.startsWith("{") === true) {
  const setting = JSON.parse(text) as Setting;
  const [name, delayMs] = mark?.split(":") ?? [];
  if (name === undefined) await runChecks(setting);
  else if (delayMs === undefined) await beVictim(setting, name);
  else await dieDuringLaunch(setting, name, Number(delayMs));
}
