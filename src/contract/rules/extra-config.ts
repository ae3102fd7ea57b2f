// SPDX-License-Identifier: Apache-2.0
import { configTextRefusals, refusal, type Refusal } from "./refusal.ts";

/**
 * Key paths of Codex's configuration that `codex.extra_config` may not touch, and where to say it instead (null: nowhere). All that
 * Rollcall writes itself is here (a test compares), and what would lead around it: other providers and servers, profiles,
 * commands of the user's, telemetry, Codex's own sandbox.
 */
export const PROTECTED_KEYS: Readonly<Record<string, string | null>> = {
  model: "model.name",
  model_provider: "model.base_url",
  model_providers: "model.base_url",
  openai_base_url: "model.base_url",
  chatgpt_base_url: "model.base_url",
  model_context_window: "codex.model_context_window",
  model_auto_compact_token_limit: "codex.model_auto_compact_token_limit",
  model_reasoning_effort: "codex.reasoning_effort",
  developer_instructions: "instructions",
  mcp_servers: "tool_grants",
  approval_policy: null,
  sandbox_mode: null,
  sandbox_workspace_write: null,
  default_permissions: null,
  permissions: null,
  projects: null,
  profile: null,
  profiles: null,
  shell_environment_policy: null,
  web_search: null,
  "tools.web_search": null,
  "features.multi_agent": null,
  "features.code_mode": null,
  "features.plugins": null,
  "features.shell_snapshot": null,
  "features.goals": null,
  check_for_update_on_startup: null,
  analytics: null,
  history: null,
  otel: null,
  notify: null,
  hooks: null,
};

/** In characters of JSON: it goes through Redis with each activation. */
const MAX_CHARACTERS = 64_000;

/** What is wrong with further Codex settings: a key that is Rollcall's own, or a value that config.toml cannot carry. Pure. */
export function extraConfigRefusals(extra: Readonly<Record<string, unknown>>, path = "codex.extra_config"): Refusal[] {
  const size = JSON.stringify(extra).length;
  if (size > MAX_CHARACTERS)
    return [refusal("extra_config_invalid", path, `it has ${size} characters of JSON`, `at most ${MAX_CHARACTERS}`)];
  return [...protectedKeysIn(extra).map((key) => conflict(key, path)), ...valueRefusals(extra, path)];
}

/** The protected keys that a configuration sets, or has no room for. Pure. */
export function protectedKeysIn(extra: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(PROTECTED_KEYS).filter((key) => {
    let at: unknown = extra;
    for (const segment of key.split(".")) {
      if (!isTable(at)) return true; // a value where a table of ours stands
      if (!Object.hasOwn(at, segment)) return false;
      at = at[segment];
    }
    return true;
  });
}

function conflict(key: string, path: string): Refusal {
  const instead = PROTECTED_KEYS[key] ?? null;
  return refusal(
    "extra_config_protected",
    `${path}.${key}`,
    `Codex's ${key} is set by Rollcall`,
    instead === null ? "leave it out" : `leave it out, and set ${instead}`,
  );
}

function valueRefusals(value: unknown, path: string): Refusal[] {
  if (value === null) return [refusal("extra_config_invalid", path, "it is null, which TOML has no form for", "leave it out")];
  if (typeof value === "string") return configTextRefusals(path, value);
  if (Array.isArray(value)) return value.flatMap((one, index) => valueRefusals(one, `${path}[${index}]`));
  if (!isTable(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => [...configTextRefusals(path, key), ...valueRefusals(inner, `${path}.${key}`)]);
}

function isTable(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
