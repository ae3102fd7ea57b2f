// SPDX-License-Identifier: Apache-2.0
import type { CauseCode } from "../../contract/failure.ts";
import type { ServerReason, TurnFailureText } from "../profile.ts";

// What several versions say in the same words (measured with 0.144.4 and 0.171.0). A version that says it otherwise has its own in its profile.

/** Beginning of a top-level error after which Codex asks the model server again. */
export const RECONNECTING = "Reconnecting...";

/** A top-level error that tells that the request could not even be sent: refused, no such name, no route. */
export const UNREACHABLE_MODEL =
  /^Reconnecting\.\.\. (?:waiting for network\b|.*\((?:stream disconnected before completion: )?(?:Connection failed: )?error sending request\b)/s;

const RATE_LIMITED = { cause: "rate_limited", kind: "provider_unavailable" } as const;
const QUOTA = { cause: "quota_exhausted", kind: "provider_quota_exhausted" } as const;
const STREAM_LOST = { cause: "stream_lost", kind: "provider_unavailable" } as const;
const NO_MODEL = { cause: "model_not_found", kind: "provider_unavailable", terminal: true } as const;
const KEY_REFUSED = { cause: "model_key_refused", kind: "provider_unavailable", terminal: true } as const;
const OVERFLOW = { incomplete: "context_overflow" } as const;

/** "The model `x` does not exist or you do not have access to it.", and what other servers say instead; only where a status or code says so too. */
const ABSENT = String.raw`\bmodel\b.{0,300}?\b(?:does not exist|do(?:es)? not have access|not found|not available|not supported)\b`;

/** What a turn.failed means; the first that fits counts. A 400's body is passed on as it came, so its code and message are looked at as well. */
export const TURN_FAILURES: readonly TurnFailureText[] = [
  {
    text: /^(?:stream disconnected before completion: )?Incomplete response returned, reason: max_output_tokens$/,
    means: { incomplete: "max_output_tokens" },
  },
  { text: /^Codex ran out of room in the model.s context window\./, means: OVERFLOW },
  { code: /^context_length_exceeded$/, means: OVERFLOW },
  // Servers that know no such code, e.g. vLLM: "This model's maximum context length is 4096 tokens. However, you requested ...".
  { message: /\bmaximum context length\b|\bexceeds? (?:the|this) (?:model.s )?context window\b/i, means: OVERFLOW },
  { text: /\blast status: 429\b|^Selected model is at capacity\b/i, means: RATE_LIMITED },
  { text: /^(?:stream disconnected before completion: )?rate limit (?:reached|exceeded)\b/i, means: RATE_LIMITED },
  { text: /^unexpected status (?:429|503)\b.*\btry again in\b/is, means: RATE_LIMITED },
  { text: /^You.ve hit your usage limit\b|^Quota exceeded\b|^unexpected status 402\b/, means: QUOTA },
  { text: /^unexpected status 403\b.*\b(?:quota|billing)\b/is, means: QUOTA },
  { text: /^unexpected status 401\b|^exceeded retry limit, last status: 401\b/, means: KEY_REFUSED },
  { text: /^unexpected status 403\b.*\b(?:api[ _-]?key|access token|credentials?)\b/is, means: KEY_REFUSED },
  { code: /^invalid_api_key$/, means: KEY_REFUSED },
  { code: /^insufficient_quota$/, means: QUOTA },
  { text: new RegExp(`^unexpected status 404 [^:]*: .*?${ABSENT}`, "is"), means: NO_MODEL },
  { code: /^model_not_found$/, means: NO_MODEL },
  { param: /^tools\[\d+\]/, means: { cause: "model_tool_refused", kind: "agent_request_failed", terminal: true } },
  {
    message: /^Invalid (?:'tools\[\d+\]|schema for function ')/,
    means: { cause: "model_tool_refused", kind: "agent_request_failed", terminal: true },
  },
  { text: /^Missing environment variable: /, means: { cause: "model_key_missing", kind: "agent_request_failed" } },
  { text: /^stream disconnected before completion: |^Connection failed: /, means: STREAM_LOST },
  {
    text: /^We.re currently experiencing high demand|^unexpected status \d{3} |^exceeded retry limit/,
    means: { cause: "turn_failed", kind: "provider_unavailable" },
  },
];

/** 0.171.0 passes on the message alone where the code was model_not_found. */
export const ABSENT_MODEL_ALONE: TurnFailureText = { text: new RegExp(`^(?:The )?(?:requested )?${ABSENT}`, "is"), means: NO_MODEL };

const answers: ServerReason["meaning"] = [
  [/^unexpected server response: HTTP 40[13]\b|^Auth required/, "mcp_server_auth"],
  [/^unexpected server response: HTTP 5/, "mcp_server_unreachable"],
  [/^unexpected server response: HTTP /, "mcp_server_protocol"],
  [/^Client error: .*(?:url is invalid|relative URL without a base|only supports http)/, "config_invalid"],
  [/^Client error: streamable HTTP session expired/, "mcp_server_protocol"],
  [/^(?:Client error: |connection closed: )/, "mcp_server_unreachable"],
  [/^(?:Unexpected content type: |Deserialize error: |JSON-RPC error: |expect initialized result, but received: )/, "mcp_server_protocol"],
];
const always = (begins: string, cause: CauseCode): ServerReason => ({ begins, meaning: [[/^/, cause]] });

/** Why a required server failed: how Codex begins the reason, and what follows, which may go on with the server's own words. */
export const SERVER_REASONS: readonly ServerReason[] = [
  { begins: "handshaking with MCP server failed: ", meaning: answers },
  always("timed out handshaking with MCP server after ", "mcp_startup_timeout"),
  // Of tools/list, which follows the handshake.
  { begins: "Transport send error: ", meaning: answers },
  always("timed out awaiting tools/list after ", "mcp_startup_timeout"),
  always("Mcp error: ", "mcp_server_protocol"),
  always("Unexpected response type", "mcp_server_protocol"),
  always("Transport closed", "mcp_server_unreachable"), // a program that ended meanwhile
  always("Invalid MCP server name ", "config_invalid"),
  always("Environment variable ", "config_invalid"),
  always("No such file or directory", "mcp_server_unreachable"), // a program that is not there
  always("Permission denied", "mcp_server_unreachable"),
];
/** Stands between {@link ServerReason.begins} and what follows. */
export const TRANSPORT = /^(?:Send message error )?Transport \[[^\]]*\] error: /;

/** The error of an MCP call that its server refused for the session's credentials. */
export const CALL_UNAUTHORIZED =
  /^tool call error: tool call failed for `[^`]*`\s+Caused by:\s+Transport send error: Transport \[[^\]]*\] error: (?:unexpected server response: HTTP 40[13]\b|Auth required\b)/;

/** What kind of answer of the model server a top-level error tells of, the first that fits; null = the HTTP status that it holds. */
export const ERROR_CLASSES: readonly (readonly [RegExp, string | null])[] = [
  [/context_length_exceeded|ran out of room in the model.s context window/, "context_length"],
  [/(?:unexpected status|last status:) (\d{3})\b/, null],
  [/Incomplete response returned, reason: max_output_tokens/, "max_output_tokens"],
  [/re currently experiencing high demand/, "5xx"],
  [/^Quota exceeded|^You.ve hit your usage limit/, "429"],
  [/^\{"error":/, "400"],
  [/stream disconnected before completion|Connection failed|error sending request/, "cut_off"],
];
