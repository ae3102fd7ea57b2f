// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { startModelServer } from "./model-server.ts";
import { officeTasks } from "./office-tasks.ts";
import { startBrokenServer, startOfficeTools } from "./office-tools.ts";

/**
 * Both stand-ins as one process, for trying things by hand: prints their addresses and the model key as one line of JSON and serves
 * until SIGTERM or SIGINT. With --tasks FILE it also writes the office tasks, whose tokens only this process accepts.
 */
const { values: flags } = parseArgs({
  options: {
    tasks: { type: "string" },
    count: { type: "string", default: "20" },
    "reply-delay-ms": { type: "string", default: "150" },
  },
});
const apiKey = `stand-in-${randomBytes(8).toString("hex")}`;
const stopped = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
const model = await startModelServer({ apiKey, replyDelayMs: Number(flags["reply-delay-ms"]) });
const office = await startOfficeTools();
const down = await startBrokenServer("refuses");
if (flags.tasks !== undefined) {
  const rows = officeTasks({ mcpUrl: office.url, mintToken: office.mintToken, brokenUrl: down.url, count: Number(flags.count) });
  await writeFile(flags.tasks, rows.map((row) => `${JSON.stringify(row)}\n`).join(""), { mode: 0o600 });
}
console.log(
  JSON.stringify({ model_base_url: model.captureBaseUrl, model_api_key: apiKey, mcp_url: office.url, tasks: flags.tasks ?? null }),
);
await stopped;
await Promise.all([model.close(), office.close(), down.close()]);
