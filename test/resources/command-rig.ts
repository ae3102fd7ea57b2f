// SPDX-License-Identifier: Apache-2.0
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { startResourcesServer, type ResourcesServerOptions, type ResourcesStandIn } from "../../examples/stand-ins/resources-server.ts";
import { fakeCommand, type FakeCommand } from "../support/fake-command.ts";

export const ROWS = Array.from({ length: 10 }, (_, n) => ({
  id: `t${n}`,
  input: `work ${n}`,
  task_data: { task_id: `t${n}`, sector: "Finance" },
}));
const TOML = `[queue]
lock_duration_ms = 2000
lock_renew_ms = 500
stalled_interval_ms = 500
[retry]
base_seconds = 0.2
[breaker]
mode = "off"
`;

/** The command with a small program in Codex's place, and a resources server. */
export async function started(
  options: ResourcesServerOptions = {},
): Promise<{ command: FakeCommand; resources: ResourcesStandIn; flags: string[] }> {
  const command = await fakeCommand('sleep 0.4\nturn "did $prompt"');
  const resources = await startResourcesServer({ deliverables: join(command.root, "deliverables"), ...options });
  onTestFinished(() => resources.close());
  writeFileSync(join(command.root, "rollcall.toml"), TOML);
  return {
    command,
    resources,
    flags: ["--config", join(command.root, "rollcall.toml"), "--resources-server", resources.url, "--concurrency", "3", "--probe", "0"],
  };
}

/** How many results there are. */
export const linesOf = ({ out }: FakeCommand): number =>
  existsSync(join(out, "results.jsonl")) ? readFileSync(join(out, "results.jsonl"), "utf8").split("\n").length - 1 : 0;
