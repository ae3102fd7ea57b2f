// SPDX-License-Identifier: Apache-2.0
import { resolve } from "node:path";
import { Command } from "commander";
import { wholeNumber } from "./options.ts";
import { settingsFrom, withWorkerFlags, type SettingsFlags } from "./settings-flags.ts";

interface ServeFlags extends SettingsFlags {
  out?: string;
  host?: string;
  port?: number;
  workers?: number;
  apiKeysFile?: string;
}

export function serveCommand(): Command {
  const command = new Command("serve")
    .description("Serve the queue over HTTP until told to stop (SIGTERM). Needs REDIS_URL, or --out for a Redis of its own.")
    .option("--out <dir>", "keep an embedded Redis and artifacts/ for this directory, instead of REDIS_URL")
    .option("--host <address>", "where to listen (default 127.0.0.1)")
    .option("--port <n>", "default 8080; 0: a free one, which is printed", wholeNumber(0))
    .option("--workers <n>", "start so many worker processes beside it", wholeNumber(0), 0)
    .option("--api-keys-file <file>", "keys that may call: lines of NAME SCOPE[,SCOPE] sha256:HEX")
    .option("--agent-server <host:port>", "serve the agent-session protocol of NeMo Gym there, without keys (default: off)");
  return withWorkerFlags(command).action(async (flags: ServeFlags) => {
    const { runServer } = await import("./run-server.ts");
    const settings = await settingsFrom(flags);
    const { host, port, apiKeysFile } = flags;
    const api = { ...settings.api, ...(host === undefined ? {} : { host }), ...(port === undefined ? {} : { port }) };
    await runServer({
      settings: { ...settings, api: apiKeysFile === undefined ? api : { ...api, keys_file: apiKeysFile } },
      env: process.env,
      outDir: flags.out === undefined ? null : resolve(flags.out),
      workers: flags.workers ?? 0,
      configFile: flags.config ?? null,
    });
  });
}
