// SPDX-License-Identifier: Apache-2.0
import type { SessionActivation } from "../contract/activation.ts";
import { leadingInstructions } from "../contract/input.ts";
import { DEFAULT_MODEL_URL } from "../contract/key-origins.ts";
import { protectedKeysIn } from "../contract/rules/extra-config.ts";
import { RollcallError } from "../errors.ts";
import type { McpServerEntry } from "./mcp-servers.ts";
import type { CodexProfile } from "./profile.ts";
import { toolNamespaces } from "./tool-namespaces.ts";

/** Id of our model provider in config.toml; Codex reserves "openai". */
const PROVIDER = "rollcall";
/** Sent to a model server when nobody named a model. Without one Codex takes its own newest, with quite other tools. */
const DEFAULT_MODEL = "gym-policy-model";
/** Name patterns that `ignore_default_excludes = false` keeps from the shell tool, and those we add to them. */
const HIDDEN_NAME = /KEY|TOKEN|SECRET|^OPENAI_/i;

export interface CodexConfigInput {
  profile: CodexProfile;
  activation: Pick<SessionActivation, "codex" | "model" | "input" | "instructions" | "sandbox">;
  /** The attempt's; replaces `{capture_key}` in the model's URL. */
  captureKey: string;
  /** Inside path. */
  workdir: string;
  /** Of the worker's configuration; comes before the activation's own instructions. */
  systemPrompt?: string | undefined;
  /** W3C, sent along with every call of the model; absent: nobody traces. */
  traceparent?: string | undefined;
  servers: Readonly<Record<string, McpServerEntry>>;
}

/** Everything config.toml holds, as an object; {@link renderConfig} makes the text. Pure. Throws RollcallError "config_invalid". */
export function codexConfig(input: CodexConfigInput): Record<string, unknown> {
  const { codex, model, sandbox } = input.activation;
  const instructions = developerInstructions(input);
  return withExtra(codex.extra_config ?? {}, {
    model_provider: PROVIDER,
    ...defined({ model: model.name ?? (model.base_url === undefined ? undefined : DEFAULT_MODEL) }),
    approval_policy: "never",
    // Around Codex is our own sandbox; a second one inside it would only take tools away.
    sandbox_mode: "danger-full-access",
    web_search: "disabled",
    check_for_update_on_startup: false,
    ...defined({
      model_context_window: codex.model_context_window,
      model_auto_compact_token_limit: codex.model_auto_compact_token_limit,
      model_reasoning_effort: codex.reasoning_effort,
    }),
    ...(instructions === "" ? {} : { developer_instructions: instructions }),
    analytics: { enabled: false },
    history: { persistence: "none" },
    ...input.profile.settings,
    ...offer(input),
    shell_environment_policy: shellEnvironmentPolicy(sandbox.env),
    model_providers: {
      [PROVIDER]: {
        name: PROVIDER,
        base_url: modelBaseUrl(model, input.captureKey),
        env_key: "OPENAI_API_KEY",
        wire_api: "responses",
        ...(input.traceparent === undefined ? {} : { http_headers: { traceparent: input.traceparent } }),
        stream_idle_timeout_ms: Math.ceil(codex.timeout_seconds * 1000), // Codex takes integers only
      },
    },
    // Otherwise 0.144.4 trusts the workdir, and its .codex/config.toml may send a granted server's token elsewhere.
    projects: { [input.workdir]: { trust_level: "untrusted" } },
    ...(Object.keys(input.servers).length === 0 ? {} : { mcp_servers: { ...input.servers } }),
  });
}

/**
 * What every kind of model is offered alike: the granted tools by name in its first request, and no agents of its own unless they are
 * wanted. `direct_only_tool_namespaces` keeps tools out of code mode and tool search, which `code_mode = false` does not.
 */
function offer({ profile, activation: { codex }, servers }: CodexConfigInput): Record<string, unknown> {
  const { features, ...others } = codex.subagents === "off" ? profile.subagentsOff : {};
  const namespaces = [
    ...toolNamespaces(Object.keys(servers), profile),
    // Those of models that know agents of the first kind; the others have theirs in the first request anyway.
    ...(codex.subagents === "on" ? ["multi_agent_v1"] : []),
  ];
  const isDirect = codex.tools === "direct" && namespaces.length > 0;
  return {
    features: {
      ...profile.features,
      ...features,
      code_mode: isDirect ? { enabled: false, direct_only_tool_namespaces: namespaces } : false,
    },
    ...others,
  };
}

/**
 * What else was asked for, with ours over it, table by table. Admission has refused protected keys; a job that came around it gets none of
 * them either. Throws RollcallError "config_invalid", naming them.
 */
function withExtra(extra: Record<string, unknown>, ours: Record<string, unknown>): Record<string, unknown> {
  const touched = protectedKeysIn(extra);
  if (touched.length > 0)
    throw new RollcallError("config_invalid", `codex.extra_config sets ${touched.join(", ")}, which Rollcall sets itself`);
  const merged = { ...extra, ...ours };
  for (const [key, value] of Object.entries(ours)) {
    const other = extra[key];
    if (isTable(value) && isTable(other)) merged[key] = { ...other, ...value };
  }
  return merged;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** Where Codex finds the Responses API. */
export function modelBaseUrl(model: Pick<SessionActivation["model"], "base_url">, captureKey: string): string {
  return (model.base_url ?? DEFAULT_MODEL_URL).replaceAll("{capture_key}", captureKey);
}

/** The configured system prompt, the activation's instructions, its leading system message; joined by a blank line. */
function developerInstructions({ systemPrompt, activation }: CodexConfigInput): string {
  return [systemPrompt, activation.instructions, leadingInstructions(activation.input)]
    .filter((text) => text != null && text !== "")
    .join("\n\n");
}

/**
 * Keeps the model key, CODEX_HOME and whatever is named like a secret from the model's commands. What the producer gave
 * to the task is meant for them, so a variable of the sandbox whose name would hide it is set again.
 */
function shellEnvironmentPolicy(env: SessionActivation["sandbox"]["env"]): Record<string, unknown> {
  const given = Object.entries(env)
    .filter(([name]) => HIDDEN_NAME.test(name))
    .map(([name, entry]) => [name, typeof entry === "string" ? entry : entry.value] as const);
  return {
    ignore_default_excludes: false,
    exclude: ["OPENAI_*", "CODEX_HOME"],
    ...(given.length === 0 ? {} : { set: Object.fromEntries(given) }),
  };
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
