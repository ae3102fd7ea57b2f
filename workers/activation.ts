// SPDX-License-Identifier: Apache-2.0
// Takes activations from the queue of REDIS_URL. Settings come from the environment and the file that ROLLCALL_CONFIG names.
import { failureOf } from "../src/cli/fail.ts";
import { runWorker } from "../src/cli/run-worker.ts";
import { loadSettings } from "../src/config/load.ts";

try {
  const settings = await loadSettings({ env: process.env, file: process.env["ROLLCALL_CONFIG"] ?? null });
  await runWorker({ settings, env: process.env, outDir: null });
} catch (error) {
  const { text, exitCode } = failureOf(error);
  if (text !== null) console.error(text);
  process.exitCode = exitCode;
}
