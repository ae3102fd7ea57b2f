// SPDX-License-Identifier: Apache-2.0
// Serves the queue of REDIS_URL over HTTP. Settings come from the environment and the file that ROLLCALL_CONFIG names.
import { failureOf } from "../src/cli/fail.ts";
import { runServer } from "../src/cli/run-server.ts";
import { loadSettings } from "../src/config/load.ts";

try {
  const configFile = process.env["ROLLCALL_CONFIG"] ?? null;
  const settings = await loadSettings({ env: process.env, file: configFile });
  await runServer({ settings, env: process.env, outDir: null, workers: 0, configFile });
} catch (error) {
  const { text, exitCode } = failureOf(error);
  if (text !== null) console.error(text);
  process.exitCode = exitCode;
}
