// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { ACTIVATION_SCHEMA_MINOR, activationSchema, MAX_INPUT_CHARACTERS, type SessionActivation } from "./activation.ts";
import { isUsableServerName, type ToolGrant } from "./grant.ts";

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
  | "file_source"
  | "provider_not_allowed"
  | "key_env_not_allowed"
  | "model_key_ambiguous"
  | "unsafe_key";

/** What this deployment's workers allow a producer to ask for. */
export interface AdmissionPolicy {
  allow_providers: readonly string[];
  allow_key_env: readonly string[];
}

export type Admission = { accepted: true; activation: SessionActivation } | { accepted: false; refusals: Refusal[] };

/**
 * Validates an activation and finds every reason against it at once. Pure. Fields that fail do not hide what is wrong
 * with the others: each top-level field is parsed by itself, and the rules look at whatever parsed.
 */
export function admit(raw: unknown, policy: AdmissionPolicy): Admission {
  if (raw === null || typeof raw !== "object" || Array.isArray(raw)) {
    return { accepted: false, refusals: [refusal("invalid_field", "", "an activation must be a JSON object", "a JSON object")] };
  }
  const unsafe = unsafeKeys(raw, "");
  if (unsafe.length > 0) return { accepted: false, refusals: unsafe };
  const aliased = withAlias(raw as Record<string, unknown>);
  if ("refusal" in aliased) return { accepted: false, refusals: [aliased.refusal] };

  const parsed = activationSchema.safeParse(aliased.value);
  const refusals = parsed.success ? [] : parsed.error.issues.flatMap((issue) => fromIssue(issue, aliased.value));
  refusals.push(...ruleRefusals(fieldsThatParse(aliased.value), policy));
  return refusals.length === 0 && parsed.success ? { accepted: true, activation: parsed.data } : { accepted: false, refusals };
}

/** Upstream's newer name for grants is accepted on input; inside there is one name. */
function withAlias(raw: Record<string, unknown>): { value: Record<string, unknown> } | { refusal: Refusal } {
  if (!Object.hasOwn(raw, "tool_accesses")) return { value: raw };
  const { tool_accesses, ...rest } = raw;
  if (Object.hasOwn(rest, "tool_grants")) {
    return {
      refusal: refusal("invalid_field", "tool_accesses", "tool_grants and its alias tool_accesses are both given", "one of the two"),
    };
  }
  return { value: { ...rest, tool_grants: tool_accesses } };
}

/** Whatever top-level fields are valid, with their defaults; the others are absent. */
function fieldsThatParse(raw: Record<string, unknown>): Partial<SessionActivation> {
  const fields: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(activationSchema.shape)) {
    const parsed = (schema as z.ZodType).safeParse(raw[name]);
    if (parsed.success) fields[name] = parsed.data;
  }
  if (!("tool_grants" in fields) && Array.isArray(raw["tool_grants"])) {
    const grants = raw["tool_grants"].map((grant) => activationSchema.shape.tool_grants.unwrap().element.safeParse(grant));
    // Positions must stay true in the paths, so a grant that failed leaves a hole.
    fields["tool_grants"] = grants.map((grant) => (grant.success ? grant.data : undefined));
  }
  return fields as Partial<SessionActivation>;
}

function ruleRefusals(fields: Partial<SessionActivation>, policy: AdmissionPolicy): Refusal[] {
  return [
    ...schemaMinorRefusals(fields),
    ...inputRefusals(fields),
    ...grantRefusals((fields.tool_grants ?? []) as (ToolGrant | undefined)[]),
    ...codexRefusals(fields.codex),
    ...sandboxRefusals(fields.sandbox, policy),
    ...modelRefusals(fields.model, policy),
    ...(fields.sandbox_access === undefined ? [] : [notYet("sandbox_access", "attaching to a sandbox that somebody else made")]),
  ];
}

function schemaMinorRefusals(fields: Partial<SessionActivation>): Refusal[] {
  if (fields.schema_minor === undefined || fields.schema_minor <= ACTIVATION_SCHEMA_MINOR) return [];
  return [
    refusal(
      "invalid_field",
      "schema_minor",
      `this version knows fields up to minor ${ACTIVATION_SCHEMA_MINOR}`,
      `0 to ${ACTIVATION_SCHEMA_MINOR}`,
    ),
  ];
}

function inputRefusals({ input, instructions }: Partial<SessionActivation>): Refusal[] {
  const found: Refusal[] = [];
  if (input !== undefined) {
    if (typeof input !== "string") {
      const roles = input.map((message) => message.role).join(", ");
      if (!/^((system|developer), )?user$/.test(roles)) {
        found.push(
          refusal("input_shape", "input", `the roles are [${roles.slice(0, 80)}]`, "a string, [user], [system, user] or [developer, user]"),
        );
      }
    }
    const prompt = promptOf(input);
    if (prompt.trim() === "")
      found.push(refusal("input_empty", "input", "the user's text is empty", "at least one character that is not blank"));
    if (prompt.length > MAX_INPUT_CHARACTERS) {
      found.push(
        refusal(
          "input_too_long",
          "input",
          `the user's text has ${prompt.length} characters, Codex takes ${MAX_INPUT_CHARACTERS}`,
          `at most ${MAX_INPUT_CHARACTERS} characters; hand longer material in as a file (sandbox.files)`,
        ),
      );
    }
    if (hasLoneSurrogate(prompt))
      found.push(refusal("control_character", "input", "it holds half of a surrogate pair", "well-formed Unicode text"));
    const leading = leadingInstructions(input);
    if (leading !== null) found.push(...configTextRefusals("input[0].content", leading));
  }
  if (instructions !== undefined) found.push(...configTextRefusals("instructions", instructions));
  return found;
}

/** The user's text of an input, its parts joined. */
export function promptOf(input: SessionActivation["input"]): string {
  if (typeof input === "string") return input;
  return input
    .filter((message) => message.role === "user")
    .map((message) => textOf(message.content))
    .join("");
}

/** The text of a leading system or developer message; null when there is none. */
export function leadingInstructions(input: SessionActivation["input"]): string | null {
  const first = typeof input === "string" ? undefined : input[0];
  return first === undefined || first.role === "user" ? null : textOf(first.content);
}

function textOf(content: string | { text: string }[]): string {
  return typeof content === "string" ? content : content.map((part) => part.text).join("");
}

function grantRefusals(grants: readonly (ToolGrant | undefined)[]): Refusal[] {
  const found: Refusal[] = [];
  const firstOfName = new Map<string, number>();
  for (const [index, grant] of grants.entries()) {
    if (grant === undefined) continue;
    const path = `tool_grants[${index}]`;
    const first = firstOfName.get(grant.name);
    if (first === undefined) firstOfName.set(grant.name, index);
    else
      found.push(
        refusal("grant_name_duplicate", `${path}.name`, `${named(grant)} has the same name as tool_grants[${first}]`, "a name of its own"),
      );
    if (grant.expected_tools !== undefined) found.push(notYet(`${path}.expected_tools`, "checking a server's tools"));
    if (grant.preflight !== undefined) found.push(notYet(`${path}.preflight`, "connecting before Codex does"));
    if (grant.type === "direct_http") {
      if (grant.required) {
        found.push(
          refusal(
            "grant_required_direct_http",
            path,
            `${named(grant)} is a required direct_http grant, which Codex cannot use`,
            'type "mcp", or required: false to have it left out',
          ),
        );
      }
      continue;
    }
    if (grant.required && !isUsableServerName(grant.name)) {
      found.push(
        refusal(
          "grant_name_unusable",
          `${path}.name`,
          `${named(grant)} is required and has a name that Codex cannot use`,
          "letters, digits, underscore and hyphen ([A-Za-z0-9_-]+), or required: false to have it left out",
        ),
      );
    }
    found.push(...connectionRefusals(grant.connection, `${path}.connection`));
  }
  return found;
}

function connectionRefusals(connection: Extract<ToolGrant, { type: "mcp" }>["connection"], path: string): Refusal[] {
  if (connection.transport === "stdio") {
    const texts: [string, string][] = [
      ["command", connection.command],
      ...connection.args.map((arg, index): [string, string] => [`args[${index}]`, arg]),
      ...Object.entries(connection.env).flatMap(([name, value]): [string, string][] => [
        [`env (a name)`, name],
        [`env.${name}`, value],
      ]),
      ...(connection.cwd === null ? [] : [["cwd", connection.cwd] as [string, string]]),
    ];
    const badNames = Object.keys(connection.env).filter((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
    return [
      ...badNames.map((name) =>
        refusal("invalid_field", `${path}.env`, `${JSON.stringify(name.slice(0, 80))} is not a variable name`, "[A-Za-z_][A-Za-z0-9_]*"),
      ),
      ...texts.flatMap(([field, text]) => configTextRefusals(`${path}.${field}`, text)),
    ];
  }
  return Object.entries(connection.headers).flatMap(([name, value]) => {
    const found: Refusal[] = [];
    // Codex 0.144.4 drops a header with a bad name or value without a word; the server then answers 401.
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) {
      found.push(
        refusal(
          "grant_header_invalid",
          `${path}.headers`,
          `${JSON.stringify(name.slice(0, 80))} is not an HTTP header name`,
          "an HTTP token (RFC 9110)",
        ),
      );
    }
    if (!/^[\t\x20-\x7e]*$/.test(value)) {
      found.push(
        refusal(
          "grant_header_invalid",
          `${path}.headers.${name.slice(0, 80)}`,
          "the value holds a character that HTTP forbids or Codex drops",
          "visible ASCII, blanks and tabs",
        ),
      );
    }
    return found;
  });
}

function codexRefusals(codex: SessionActivation["codex"] | undefined): Refusal[] {
  if (codex === undefined) return [];
  const found: Refusal[] = [];
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
  const { model_context_window: window, model_auto_compact_token_limit: limit } = codex;
  if (window !== undefined && limit !== undefined && limit > Math.floor((window * 9) / 10)) {
    const most = Math.floor((window * 9) / 10);
    found.push(
      refusal(
        "compact_limit_out_of_range",
        "codex.model_auto_compact_token_limit",
        `${limit} is over 90 % of the context window`,
        `at most ${most}`,
      ),
    );
  }
  if (codex.idle_seconds !== undefined) found.push(notYet("codex.idle_seconds", "ending an idle session"));
  if (codex.skills !== undefined) found.push(notYet("codex.skills", "placing skills"));
  if (codex.extra_config !== undefined) found.push(notYet("codex.extra_config", "further Codex settings"));
  return found;
}

function sandboxRefusals(sandbox: SessionActivation["sandbox"] | undefined, policy: AdmissionPolicy): Refusal[] {
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
      found.push(refusal("file_source", path, `it has ${sources.length} sources`, "exactly one of content and content_base64"));
    if (file.artifact !== undefined) found.push(notYet(`${path}.artifact`, "placing artifacts", "content or content_base64"));
    if (file.url !== undefined) found.push(notYet(`${path}.url`, "fetching files", "content or content_base64"));
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

function modelRefusals(model: SessionActivation["model"] | undefined, policy: AdmissionPolicy): Refusal[] {
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
  if (model.api_key_env !== undefined && model.api_key !== undefined) {
    found.push(refusal("model_key_ambiguous", "model.api_key", "api_key and api_key_env are both given", "one of the two"));
  }
  if (model.api_key !== undefined && !/^[\x21-\x7e]+$/.test(model.api_key)) {
    found.push(refusal("invalid_field", "model.api_key", "it holds a blank or a character outside visible ASCII", "visible ASCII"));
  }
  return found;
}

/**
 * Text that goes into config.toml. The TOML writer lets a lone surrogate through and writes DEL raw, which no TOML
 * reader takes (seen in @iarna/toml 3.0.0); NUL cannot be part of an argument or a variable.
 */
function configTextRefusals(path: string, text: string): Refusal[] {
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

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** A key called `__proto__` would silently vanish from, or change, an object it is copied into. */
function unsafeKeys(value: unknown, path: string): Refusal[] {
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const innerPath = Array.isArray(value) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    const own = key === "__proto__" ? [refusal("unsafe_key", innerPath, "the name __proto__ is not usable as a key", "another name")] : [];
    return [...own, ...unsafeKeys(inner, innerPath)];
  });
}

function fromIssue(issue: z.core.$ZodIssue, raw: unknown): Refusal[] {
  const path = pathText(issue.path);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) =>
      refusal(
        "unknown_field",
        path === "" ? key : `${path}.${key}`,
        `there is no field ${JSON.stringify(key.slice(0, 80))} here`,
        "only fields of rollcall.activation/1",
      ),
    );
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    // Report the variant that got furthest: the one with the fewest complaints.
    const closest = issue.errors.toSorted((a, b) => a.length - b.length)[0]!;
    return closest.flatMap((inner) => fromIssue({ ...inner, path: [...issue.path, ...inner.path] }, raw));
  }
  const missing = issue.code === "invalid_type" && valueAt(raw, issue.path) === undefined;
  return [refusal(missing ? "missing_field" : "invalid_field", path, missing ? "it is missing" : issue.message, accepts(issue))];
}

function accepts(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.expected;
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value)).join(" or ");
    case "too_small":
      return `${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}`;
    case "too_big":
      return `${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}`;
    case "invalid_format":
      return issue.pattern === undefined ? issue.format : `text that matches ${issue.pattern}`;
    default:
      return "see schemas/activation.json";
  }
}

function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  let value = raw;
  for (const key of path) {
    if (value === null || typeof value !== "object") return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** ["tool_grants", 0, "connection"] -> "tool_grants[0].connection" */
function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`),
    "",
  );
}

function named(grant: ToolGrant): string {
  return `the grant ${JSON.stringify(grant.name.slice(0, 80))}`;
}

function notYet(path: string, what: string, accepted = "leave the field out"): Refusal {
  return refusal("not_supported_yet", path, `${what} is not supported yet`, accepted);
}

function refusal(code: RefusalCode, path: string, message: string, accepted: string): Refusal {
  return { code, path, message, accepted };
}
