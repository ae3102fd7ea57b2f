// SPDX-License-Identifier: Apache-2.0
import { configTextRefusals, refusal, type Refusal } from "./refusal.ts";

/**
 * Key paths of Codex's configuration that `codex.extra_config` may not touch, and where to say it instead (null: nowhere). All that
 * Rollcall writes itself with any version is here (a test compares), and what would lead around it: other providers, servers and
 * catalogues, profiles, agents, commands of the user's, telemetry, transcripts elsewhere, Codex's own sandbox, model calls that nobody
 * counts. Features have a rule of their own besides, {@link FREE_FEATURES}.
 */
export const PROTECTED_KEYS: Readonly<Record<string, string | null>> = {
  model: "model.name",
  model_provider: "model.base_url",
  model_providers: "model.base_url",
  openai_base_url: "model.base_url",
  chatgpt_base_url: "model.base_url",
  model_catalog_json: null,
  model_context_window: "codex.model_context_window",
  model_auto_compact_token_limit: "codex.model_auto_compact_token_limit",
  model_post_turn_compact_threshold_percent: null,
  model_reasoning_effort: "codex.reasoning_effort",
  developer_instructions: "instructions",
  mcp_servers: "tool_grants",
  mcp_optional_startup_grace_ms: "codex.mcp_startup_timeout_seconds",
  mcp_enterprise_managed_auth: null,
  agents: "codex.subagents",
  code_mode: "codex.tools",
  goals: null,
  memories: null,
  plugins: null,
  marketplaces: null,
  orchestrator: null,
  cloud: null,
  approval_policy: null,
  approvals_reviewer: null,
  auto_review: null,
  sandbox_mode: null,
  sandbox_workspace_write: null,
  default_permissions: null,
  permissions: null,
  projects: null,
  profile: null,
  profiles: null,
  debug: null,
  shell_environment_policy: null,
  web_search: null,
  "tools.web_search": null,
  "features.multi_agent": "codex.subagents",
  "features.multi_agent_v2": "codex.subagents",
  "features.code_mode": "codex.tools",
  "features.code_mode_only": "codex.tools",
  "features.memories": null,
  "features.plugins": null,
  "features.shell_snapshot": null,
  "features.goals": null,
  "features.sleep_tool": null,
  "features.unbounded_connection_retries": null,
  check_for_update_on_startup: null,
  analytics: null,
  history: null,
  rollout_trace: null,
  experimental_thread_store: null,
  experimental_thread_store_endpoint: null,
  experimental_thread_config_endpoint: null,
  otel: null,
  notify: null,
  hooks: null,
};

/**
 * The features that may be set: how commands, patches, images and skills reach the model, whichever way they are set. Every other one
 * is refused, also those of versions to come and older names of the same (`collab` is `multi_agent`): some add tools or model calls
 * that no event shows.
 */
export const FREE_FEATURES: readonly string[] = [
  "apply_patch_freeform",
  "apply_patch_preserve_line_endings",
  "enable_request_compression",
  "fast_mode",
  "image_detail_original",
  "image_resize_notice",
  "omit_skill_descriptions",
  "personality",
  "resize_all_images",
  "safe_image_decoder",
  "shell_tool",
  "skill_search",
  "terminal_visualization_instructions",
  "unified_exec",
  "unified_exec_tty",
  "unified_image_budget",
  "utc_environment_date",
  "view_image",
];

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
  const named = Object.keys(PROTECTED_KEYS).filter((key) => {
    let at: unknown = extra;
    for (const segment of key.split(".")) {
      if (!isTable(at)) return true; // a value where a table of ours stands
      if (!Object.hasOwn(at, segment)) return false;
      at = at[segment];
    }
    return true;
  });
  const features = isTable(extra["features"]) ? Object.keys(extra["features"]) : [];
  const others = features.filter((name) => !FREE_FEATURES.includes(name)).map((name) => `features.${name}`);
  return [...new Set([...named, ...others])];
}

function conflict(key: string, path: string): Refusal {
  const shown = key.slice(0, 80);
  if (!Object.hasOwn(PROTECTED_KEYS, key)) {
    const why = `Codex's ${shown} may change what a session is offered, or what it does unseen`;
    return refusal("extra_config_protected", `${path}.${shown}`, why, `leave it out; of the features, ${FREE_FEATURES.join(", ")}`);
  }
  const instead = PROTECTED_KEYS[key] ?? null;
  return refusal(
    "extra_config_protected",
    `${path}.${shown}`,
    `Codex's ${shown} is set by Rollcall`,
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
