// SPDX-License-Identifier: Apache-2.0
import type { KeyOrigins } from "../key-origins.ts";

/** One reason why an activation is not accepted. Final: 422 class, never retried. */
export interface Refusal {
  code: RefusalCode;
  /** e.g. "tool_grants[0].connection.url"; "" for the whole. */
  path: string;
  /** What is wrong; never a header, env or key value. */
  message: string;
  /** What would be accepted. */
  accepted: string;
}

export type RefusalCode =
  | "invalid_field"
  | "unknown_field"
  | "missing_field"
  | "not_supported_yet"
  | "input_too_long"
  | "input_empty"
  | "input_shape"
  | "control_character"
  | "grant_name_duplicate"
  | "grant_name_unusable"
  | "grant_required_direct_http"
  | "grant_header_invalid"
  | "timeout_out_of_range"
  | "compact_limit_out_of_range"
  | "extra_config_protected"
  | "extra_config_invalid"
  | "file_source"
  | "provider_not_allowed"
  | "key_env_not_allowed"
  | "key_origin_not_allowed"
  | "model_key_ambiguous"
  | "unsafe_key";

/** What this deployment's workers allow a producer to ask for. */
export interface AdmissionPolicy {
  allow_providers: readonly string[];
  allow_key_env: readonly string[];
  /** Where the key in each of these variables may be sent. Absent: only the workers say, when they run it. */
  key_origins?: KeyOrigins;
}

/** A field that the schema knows and no code serves yet. */
export function notYet(path: string, what: string, accepted = "leave the field out"): Refusal {
  return refusal("not_supported_yet", path, `${what} is not supported yet`, accepted);
}

export function refusal(code: RefusalCode, path: string, message: string, accepted: string): Refusal {
  return { code, path, message, accepted };
}

/**
 * Text that goes into config.toml. The TOML writer lets a lone surrogate through and writes DEL raw, which no TOML
 * reader takes (seen in @iarna/toml 3.0.0); NUL cannot be part of an argument or a variable.
 */
export function configTextRefusals(path: string, text: string): Refusal[] {
  const found: Refusal[] = [];
  if (text.includes("\u007f") || text.includes("\0")) {
    found.push(
      refusal(
        "control_character",
        path,
        "it holds a NUL or DEL character, which Codex's configuration cannot carry",
        "text without NUL and DEL",
      ),
    );
  }
  if (hasLoneSurrogate(text))
    found.push(refusal("control_character", path, "it holds half of a surrogate pair", "well-formed Unicode text"));
  return found;
}

export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}
