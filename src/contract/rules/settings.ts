// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { keyMayGoTo, keyOriginText, modelOrigin } from "../key-origins.ts";
import type { PlacedFile, SessionActivation } from "../activation.ts";
import { extraConfigRefusals } from "./extra-config.ts";
import { notYet, refusal, type AdmissionPolicy, type Refusal } from "./refusal.ts";

/** Limits that depend on each other. */
export function codexRefusals(codex: SessionActivation["codex"] | undefined): Refusal[] {
  if (codex === undefined) return [];
  const found = compactLimitRefusals(codex);
  for (const field of ["mcp_tool_timeout_seconds", "mcp_startup_timeout_seconds"] as const) {
    const value = codex[field];
    if (value !== undefined && value > codex.timeout_seconds) {
      found.push(
        refusal(
          "timeout_out_of_range",
          `codex.${field}`,
          `${value} is more than codex.timeout_seconds (${codex.timeout_seconds})`,
          `more than 0 and at most ${codex.timeout_seconds}`,
        ),
      );
    }
  }
  if (codex.extra_config !== undefined) found.push(...extraConfigRefusals(codex.extra_config));
  return found;
}

/** Codex compacts when the limit is reached; above 90 % of the window there is no room left for that. */
export function compactLimitRefusals(codex: {
  model_context_window?: number | undefined;
  model_auto_compact_token_limit?: number | undefined;
}): Refusal[] {
  const { model_context_window: window, model_auto_compact_token_limit: limit } = codex;
  if (window === undefined || limit === undefined) return [];
  const most = Math.floor((window * 9) / 10);
  if (limit <= most) return [];
  const message = `${limit} is over 90 % of the context window (${window})`;
  return [refusal("compact_limit_out_of_range", "codex.model_auto_compact_token_limit", message, `at most ${most}`)];
}

export function sandboxRefusals(sandbox: SessionActivation["sandbox"] | undefined, policy: AdmissionPolicy): Refusal[] {
  if (sandbox === undefined) return [];
  const found: Refusal[] = [];
  if (sandbox.provider !== undefined && !policy.allow_providers.includes(sandbox.provider)) {
    found.push(
      refusal(
        "provider_not_allowed",
        "sandbox.provider",
        `${JSON.stringify(sandbox.provider.slice(0, 80))} is not allowed by the workers' configuration`,
        policy.allow_providers.join(", "),
      ),
    );
  }
  if (sandbox.image !== undefined) found.push(notYet("sandbox.image", "container images"));
  if (sandbox.workdir !== undefined) found.push(notYet("sandbox.workdir", "choosing the workdir (it is /workspace)"));
  if (sandbox.network.mode !== "shared") found.push(notYet("sandbox.network.mode", "limiting the network", 'mode "shared"'));
  for (const [index, file] of sandbox.files.entries()) {
    const path = `sandbox.files[${index}]`;
    const sources = [file.content, file.content_base64, file.artifact, file.url].filter((source) => source !== undefined);
    if (sources.length !== 1)
      found.push(refusal("file_source", path, `it has ${sources.length} sources`, "exactly one of content, content_base64 and artifact"));
    if (!checksumFits(file))
      found.push(refusal("file_source", `${path}.sha256`, "the content has another sha256", "the content's own, or none"));
    if (file.artifact !== undefined && !/^sha256:[0-9a-f]{64}$/.test(file.artifact))
      found.push(refusal("invalid_field", `${path}.artifact`, "it names no file", "sha256:HEX of a file that was put (PUT /v1/files/HEX)"));
    if (file.artifact !== undefined && file.sha256 !== undefined && file.artifact !== `sha256:${file.sha256}`)
      found.push(refusal("file_source", `${path}.sha256`, "it is another one than the artifact's", "the artifact's own, or none"));
    if (file.url !== undefined) found.push(notYet(`${path}.url`, "fetching files", "content, content_base64 or artifact"));
    if (file.path.split("/").includes("..") || file.path.includes("\0")) {
      found.push(refusal("invalid_field", `${path}.path`, "it leaves the workdir", "a path without .. below the workdir"));
    }
  }
  for (const name of Object.keys(sandbox.env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      found.push(
        refusal("invalid_field", "sandbox.env", `${JSON.stringify(name.slice(0, 80))} is not a variable name`, "[A-Za-z_][A-Za-z0-9_]*"),
      );
    }
    if (RESERVED_ENV.has(name)) {
      found.push(refusal("invalid_field", `sandbox.env.${name}`, "Rollcall sets this variable itself", "another name"));
    }
    const entry = sandbox.env[name];
    if (entry !== undefined && (typeof entry === "string" ? entry : entry.value).includes("\0")) {
      found.push(refusal("control_character", `sandbox.env.${name}`, "it holds a NUL byte", "text without NUL"));
    }
  }
  return found;
}

function checksumFits({ content, content_base64, sha256 }: PlacedFile): boolean {
  if (sha256 === undefined || (content === undefined && content_base64 === undefined)) return true;
  const bytes = content === undefined ? Buffer.from(content_base64 ?? "", "base64") : Buffer.from(content, "utf8");
  return createHash("sha256").update(bytes).digest("hex") === sha256;
}

/** Variables whose meaning Codex or the sandbox depends on. */
const RESERVED_ENV = new Set([
  "HOME",
  "CODEX_HOME",
  "OPENAI_API_KEY",
  "RUST_LOG",
  "PATH",
  "TMPDIR",
  "LANG",
  "XDG_CACHE_HOME",
  "ROLLCALL_SANDBOX_ID",
]);

export function modelRefusals(model: SessionActivation["model"] | undefined, policy: AdmissionPolicy): Refusal[] {
  if (model === undefined) return [];
  const found: Refusal[] = [];
  if (model.base_url !== undefined) {
    const url = model.base_url.replaceAll("{capture_key}", "key");
    if (!/^https?:\/\/[^\s\u0000-\u001f\u007f]+$/.test(url) || !URL.canParse(url)) {
      found.push(refusal("invalid_field", "model.base_url", "it is not an absolute http or https URL", "e.g. http://127.0.0.1:8000/v1"));
    }
  }
  if (model.api_key_env !== undefined && !policy.allow_key_env.includes(model.api_key_env)) {
    found.push(
      refusal(
        "key_env_not_allowed",
        "model.api_key_env",
        `${JSON.stringify(model.api_key_env.slice(0, 80))} is not among the variables the workers' configuration allows`,
        policy.allow_key_env.join(", ") || "none",
      ),
    );
  }
  const { base_url: url, api_key_env: variable } = model;
  const { allow_key_env, key_origins: origins } = policy;
  if (
    origins !== undefined &&
    url !== undefined &&
    variable !== undefined &&
    allow_key_env.includes(variable) &&
    modelOrigin(url) !== null
  ) {
    const { message, accepted } = keyOriginText(variable, url);
    if (!keyMayGoTo(origins, variable, url)) found.push(refusal("key_origin_not_allowed", "model.base_url", message, accepted));
  }
  if (model.api_key_env !== undefined && model.api_key !== undefined) {
    found.push(refusal("model_key_ambiguous", "model.api_key", "api_key and api_key_env are both given", "one of the two"));
  }
  if (model.api_key !== undefined && !/^[\x21-\x7e]+$/.test(model.api_key)) {
    found.push(refusal("invalid_field", "model.api_key", "it holds a blank or a character outside visible ASCII", "visible ASCII"));
  }
  return found;
}
