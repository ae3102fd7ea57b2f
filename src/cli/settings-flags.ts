// SPDX-License-Identifier: Apache-2.0
import type { Command } from "commander";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { PROTOCOLS, type Protocol } from "../resources/server.ts";
import { hoursValue, oneOf, secondsValue, wholeNumber } from "./options.ts";

/** Flags that several commands share; each is a setting of the same meaning. */
export interface SettingsFlags {
  config?: string;
  concurrency?: number;
  sandbox?: "bubblewrap" | "host";
  model?: string;
  modelBaseUrl?: string;
  modelApiKeyEnv?: string;
  timeoutSeconds?: number;
  mcpToolTimeoutSeconds?: number;
  agentServer?: string;
  resourcesServer?: string;
  resourcesProtocol?: Protocol;
  maxTokens?: number;
  maxModelCalls?: number;
  maxHours?: number;
}

export function withConfigFlag(command: Command): Command {
  return command.option("--config <file>", "settings, e.g. rollcall.toml (see docs/settings.md)");
}

export function withWorkerFlags(command: Command): Command {
  return withConfigFlag(command)
    .option("--concurrency <n>", "sessions at once (default 4)", wholeNumber(1))
    .option("--sandbox <provider>", "bubblewrap (default), or host: no isolation, for development", oneOf(["bubblewrap", "host"] as const));
}

export function withModelFlags(command: Command): Command {
  return command
    .option("--model <name>", "model for rows that name none")
    .option("--model-base-url <url>", "Responses API for rows that name none; {capture_key} is replaced")
    .option("--model-api-key-env <name>", "variable that holds the model key (default OPENAI_API_KEY)")
    .option("--timeout-seconds <s>", "wall clock of one attempt, for rows that name none (default 600)", secondsValue)
    .option("--mcp-tool-timeout-seconds <s>", "limit of one tool call; must exceed the slowest call", secondsValue);
}

export function withResourcesFlags(command: Command): Command {
  return command
    .option("--resources-server <url>", "resources server of NeMo Gym that seeds each rollout and scores it (docs/resources-servers.md)")
    .option("--resources-protocol <which>", "session (default): under ids, as environment servers do; row: as agents do", oneOf(PROTOCOLS));
}

export function withBudgetFlags(command: Command): Command {
  return command
    .option(
      "--max-tokens <n>",
      "start nothing more once the run's attempts used so many tokens; what runs ends, exit code 5",
      wholeNumber(1),
    )
    .option("--max-model-calls <n>", "the same for model calls", wholeNumber(1))
    .option("--max-hours <h>", "the same for the time that the run's commands took together", hoursValue);
}

/** Settings from the file, the environment and the flags. Throws RollcallError. */
export function settingsFrom(flags: SettingsFlags): Promise<Settings> {
  return loadSettings({
    env: process.env,
    file: flags.config ?? null,
    overrides: {
      concurrency: flags.concurrency,
      model: { name: flags.model, base_url: flags.modelBaseUrl, api_key_env: flags.modelApiKeyEnv },
      codex: { timeout_seconds: flags.timeoutSeconds, mcp_tool_timeout_seconds: flags.mcpToolTimeoutSeconds },
      sandbox: { provider: flags.sandbox },
      resources: { url: flags.resourcesServer, protocol: flags.resourcesProtocol },
      budget: { max_tokens: flags.maxTokens, max_model_calls: flags.maxModelCalls, max_hours: flags.maxHours },
      agent_server: { address: flags.agentServer },
    },
  });
}
