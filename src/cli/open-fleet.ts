// SPDX-License-Identifier: Apache-2.0
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import type { Fleet } from "../rollout/fleet.ts";
import type { OutputDir } from "../rollout/output-dir.ts";
import type { Terminal } from "./terminal.ts";

export async function openFleet(_options: {
  out: OutputDir;
  settings: Settings;
  env: Environment;
  workers: number;
  terminal: Terminal;
}): Promise<Fleet> {
  throw new RollcallError("not_wired", "not wired yet", { exitCode: 70 });
}
