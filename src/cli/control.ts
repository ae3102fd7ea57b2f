// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import type { ControlAction } from "../queue/answers.ts";
import { secondsValue } from "./options.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";

export interface ControlFlags extends SettingsFlags, ServerFlags {
  out?: string;
  json?: true;
  run?: true;
  reason: string;
  by?: string;
  wait: number;
}

const DESCRIPTIONS: Record<ControlAction, string> = {
  cancel: "End an activation, or all of a run that has not ended, as cancelled. What was seen of it is kept.",
  pause: "Start nothing more of a run; what runs goes on.",
  resume: "Let a paused run go on.",
  retry: "Run an ended activation again, or all of a run that are not gradable.",
  status: "Tell where an activation is, or how far a run is and who works on it.",
};

/** `rollcall cancel`, `pause`, `resume`, `retry`, `status`: from any process that reaches the run's Redis. */
export function controlCommands(setExitCode: (code: number) => void): Command[] {
  return (Object.keys(DESCRIPTIONS) as ControlAction[]).map((action) => {
    const command = new Command(action)
      .description(DESCRIPTIONS[action])
      .argument("[id]", "an activation, a task or a run; with --out its run when left away")
      .option("--out <dir>", "output directory of a run with an embedded Redis, instead of REDIS_URL")
      .option("--json", "the answer as one JSON object on stdout");
    if (action === "cancel" || action === "retry" || action === "status") {
      command.option("--run", "take the id for a run's, where an activation has the same");
    }
    if (action === "cancel" || action === "pause") {
      command.option("--reason <text>", "why; kept with it", "").option("--by <name>", "who (default: user@host)");
    }
    if (action === "cancel") {
      command.option("--wait <s>", "give up waiting for ends when so long none came", secondsValue, 10);
    }
    return withConfigFlag(withServerFlags(command)).action(async (id: string | undefined, flags: ControlFlags) => {
      const settings = await settingsFrom(flags);
      const { control } = await import("./control-actions.ts");
      setExitCode(await control(action, id ?? null, flags, { settings, env: process.env }));
    });
  });
}
