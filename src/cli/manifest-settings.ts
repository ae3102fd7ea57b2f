// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { PACKAGED_CODEX_VERSION } from "../codex/binary.ts";
import type { Settings } from "../config/settings.ts";
import type { ResourcesServer } from "../resources/server.ts";
import type { Manifest } from "../rollout/output-dir.ts";
import { rollcallVersion } from "./version.ts";

/** What changes the work itself. Not: where the model server is, tokens, limits of start-up and of this machine. null = the default. */
export function comparableSettings(
  settings: Settings,
  { repeats, skillsSha256, server }: { repeats: number; skillsSha256: string | null; server: ResourcesServer | null },
): Manifest["settings"] {
  const { model, codex, sandbox, codex_version, system_prompt, tool_grants, required_tools, outputs } = settings;
  return {
    repeats,
    model: model.name ?? null,
    reasoning_effort: codex.reasoning_effort ?? null,
    model_context_window: codex.model_context_window ?? null,
    model_auto_compact_token_limit: codex.model_auto_compact_token_limit ?? null,
    subagents: codex.subagents === "off" ? null : codex.subagents,
    tools: codex.tools === "direct" ? null : codex.tools,
    extra_config: codex.extra_config ?? null,
    skills_sha256: skillsSha256,
    timeout_seconds: codex.timeout_seconds,
    codex_version: codex_version ?? null,
    sandbox: sandbox.provider,
    system_prompt_sha256: system_prompt === undefined ? null : createHash("sha256").update(system_prompt).digest("hex"),
    tool_grants: tool_grants.map(({ name }) => name),
    required_tools: orNull(required_tools),
    outputs: orNull(outputs.paths),
    // Who scores it: not where that server is, which may move.
    resources: server === null ? null : { name: server.name, protocol: server.protocol, mcp: server.mcp },
  };
}

/** The rest, for the record: nothing that is a secret, or an address that may hold one. */
export function otherSettings(settings: Settings): Manifest["settings"] {
  const { model, codex, sandbox, outputs, queue, limiter, retry, breaker, budget, references, resources } = settings;
  const { concurrency, max_attempts, taskset, allow_providers, allow_key_env } = settings;
  const { url, ...resourcesOthers } = resources;
  const { extra_config: _, ...codexOthers } = codex;
  const tables = { codex: codexOthers, sandbox, outputs, queue, limiter, retry, breaker, budget, references, resources: resourcesOthers };
  const all = { concurrency, max_attempts, taskset, allow_providers, allow_key_env, ...tables };
  // Without what is undefined: the manifest is JSON.
  const plain = JSON.parse(JSON.stringify(all)) as Manifest["settings"];
  return { ...plain, model_server: placeOf(model.base_url), model_api_key_env: model.api_key_env, resources_server: placeOf(url) };
}

/** What runs: Codex as the settings name it, unless workers elsewhere have another. */
export function versions({ codex_version, codex_bin }: Settings): Record<string, string> {
  const codex = codex_version ?? PACKAGED_CODEX_VERSION;
  return {
    rollcall: rollcallVersion(),
    node: process.versions.node,
    codex: codex_bin === undefined ? codex : `${codex} (codex_bin)`,
    platform: `${process.platform} ${process.arch}`,
  };
}

/** Without what may hold a secret: the user's part and the query. */
function placeOf(url: string | undefined): string | null {
  if (url === undefined) return null;
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function orNull(values: readonly string[]): string[] | null {
  return values.length === 0 ? null : [...values];
}
