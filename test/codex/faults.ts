// SPDX-License-Identifier: Apache-2.0
import { concludeSession } from "../../src/activation/conclude.ts";
import { toolsNotOffered } from "../../src/activation/offered-tools.ts";
import { refusedTools } from "../../src/activation/refused-tool.ts";
import { isBackOff } from "../../src/activation/sign.ts";
import type { Stopped } from "../../src/activation/run-codex.ts";
import { profileFor } from "../../src/codex/profile.ts";
import type { ToolGrant } from "../../src/contract/grant.ts";
import { emptySecretSet } from "../../src/redact/index.ts";
import type { SandboxExit } from "../../src/sandbox/types.ts";
import { httpGrant } from "./config-input.ts";
import { factsOf, recordings, VERSIONS, type Recording, type Version } from "./recordings.ts";

/** What is seen of a fault: a recording, or Codex's last words after an answer of the model. */
interface Seen {
  /** [group, case] of test/fixtures/codex. */
  recording?: readonly [group: string, name: string];
  /** Text of turn.failed. */
  says?: string;
  exit?: SandboxExit;
  stopped?: Stopped;
  requires?: readonly string[];
  /** What the server `office` was found to offer; absent: nobody looked. */
  offers?: readonly string[];
}

/** One fault: what is seen of it, and what it must come to. */
export interface Fault {
  /** As docs/results.md tells it. */
  fault: string;
  seen: Seen | Record<Version, Seen>;
  /** `cause class how`, and the gap that is told; the same for both versions unless said. how: retried | final | gradable | waits. */
  is: string | Record<Version, string>;
}

const ANSWERED = ["thread.started", "turn.started"].map((type) => ({ type, thread_id: "t" }));
const COMMAND = { id: "c", type: "command_execution", command: "make", aggregated_output: "", exit_code: 0, status: "completed" };

const killed = (more: object = {}): SandboxExit => ({ started: true, code: null, signal: "SIGKILL", ...more });
const by = (signal: NodeJS.Signals): SandboxExit => ({ started: true, code: null, signal });
const exit = (code: number): SandboxExit => ({ started: true, code, signal: null });
const WALL: Stopped = { kind: "wall_clock" };
const provider = (name: string): Seen => ({ recording: ["provider", name] });
const faults = (name: string, more: Seen = {}): Seen => ({ recording: ["faults", name], ...more });
const startup = (name: string): Seen => ({ recording: ["startup", name] });
const until = (seen: Seen): Seen => ({ ...seen, exit: by("SIGTERM"), stopped: WALL });
const running = (more: Seen): Seen => ({ recording: ["signals", "SIGKILL-shell"], ...more });

const LOST = "stream_lost model_provider retried";
const BUSY = "rate_limited model_provider waits";
const SPENT = "quota_exhausted model_provider retried";
const PROVIDER = "turn_failed model_provider retried";
const FULL = "context_overflow limit gradable";
const ABSENT = "model_not_found model_provider final";

/** The rows of the table in docs/results.md, in its order. */
export const FAULTS: readonly Fault[] = [
  {
    fault: "the model server refuses connections, from the start",
    seen: { "0.144.4": faults("refused"), "0.171.0": faults("refused-retries-bounded") },
    is: LOST,
  },
  {
    fault: "the same in the middle of a session",
    seen: { "0.144.4": faults("works-once-then-refused"), "0.171.0": until(faults("works-once-then-refused")) },
    is: LOST,
  },
  { fault: "the same until the wall clock", seen: { "0.144.4": until(faults("refused")), "0.171.0": until(faults("refused")) }, is: LOST },
  { fault: "its name is not known", seen: { "0.144.4": provider("dns-fail"), "0.171.0": until(provider("dns-fail")) }, is: LOST },
  {
    fault: "it closes connections unanswered",
    seen: { says: "stream disconnected before completion: error sending request for url (http://m/v1)" },
    is: LOST,
  },
  { fault: "no connection is made", seen: { says: "Connection failed: error sending request" }, is: LOST },
  { fault: "its stream breaks off, for good", seen: provider("stream-cut"), is: LOST },
  { fault: "the same after an item", seen: faults("cut-after-first-item"), is: LOST },
  { fault: "its stream stalls", seen: provider("idle-stall"), is: LOST },
  { fault: "it answers 200 with a web page", seen: provider("not-sse-200"), is: LOST },
  { fault: "response.failed, server_error", seen: provider("response-failed"), is: LOST },
  {
    fault: "response.incomplete, content_filter",
    seen: { says: "stream disconnected before completion: Incomplete response returned, reason: content_filter" },
    is: LOST,
  },
  { fault: "its stream breaks off once", seen: provider("stream-cut-then-ok"), is: "- - gradable" },
  { fault: "it never answers", seen: until(provider("hang-before-headers")), is: "wall_clock model_provider gradable" },
  {
    fault: "it answers with nothing, and counts no token",
    seen: faults("empty-answer"),
    is: "- model_provider gradable model_answer_empty",
  },
  { fault: "500", seen: provider("500"), is: PROVIDER },
  { fault: "502, 503", seen: { says: "unexpected status 503 Service Unavailable: down, url: http://m/v1/responses" }, is: PROVIDER },
  { fault: "503, server_is_overloaded", seen: faults("503-server-is-overloaded"), is: BUSY },
  {
    fault: '503, "try again in 4s"',
    seen: { says: "unexpected status 503 Service Unavailable: Please try again in 4s., url: http://m/v1" },
    is: BUSY,
  },
  { fault: "429", seen: provider("429"), is: BUSY },
  { fault: "429 with Retry-After, always", seen: faults("429-retry-after-1-always"), is: BUSY },
  {
    fault: "429, insufficient_quota",
    seen: faults("429-insufficient-quota"),
    is: { "0.144.4": BUSY, "0.171.0": SPENT },
  },
  { fault: "429, usage_limit_reached", seen: faults("429-usage-limit-reached"), is: SPENT },
  { fault: "402", seen: faults("402"), is: SPENT },
  { fault: "403, insufficient_quota", seen: faults("403-quota"), is: SPENT },
  { fault: "response.failed, insufficient_quota", seen: { says: "Quota exceeded. Check your plan and billing details." }, is: SPENT },
  {
    fault: "response.failed, rate_limit_exceeded",
    seen: {
      "0.144.4": { says: "stream disconnected before completion: Rate limit reached for m. Please try again in 0.3s." },
      "0.171.0": { says: "rate limit exceeded: Rate limit reached for m. Please try again in 0.3s." },
    },
    is: BUSY,
  },
  {
    fault: "response.failed, server_is_overloaded",
    seen: { says: "Selected model is at capacity. Please try a different model." },
    is: BUSY,
  },
  { fault: "401", seen: provider("401"), is: "model_key_refused model_provider final" },
  { fault: "403", seen: provider("403-html"), is: PROVIDER },
  { fault: "404, model_not_found", seen: faults("404-model"), is: ABSENT },
  { fault: "404, a text of a model that is not there", seen: faults("404-model-no-code"), is: ABSENT },
  { fault: "400, model_not_found", seen: faults("400-model"), is: ABSENT },
  { fault: "404 for another reason", seen: faults("404-path"), is: PROVIDER },
  { fault: "400 before any answer", seen: provider("400"), is: PROVIDER },
  { fault: "400 after an answer", seen: provider("400-after-tool"), is: "turn_failed agent retried" },
  { fault: "400, context_length_exceeded", seen: faults("400-context-length-exceeded"), is: FULL },
  { fault: '400, "maximum context length" and no code', seen: faults("400-context-no-code"), is: FULL },
  { fault: "response.failed, context_length_exceeded", seen: provider("response-failed-context"), is: FULL },
  { fault: "response.incomplete, max_output_tokens", seen: provider("incomplete-max-output"), is: "max_output_tokens limit gradable" },
  {
    fault: "400 that names tools[N] of a grant",
    seen: faults("400-tool-name", { offers: ["finish", "t".repeat(90)] }),
    is: "model_tool_refused grant final",
  },
  {
    fault: "required server: no answer to initialize",
    seen: startup("hang-required"),
    is: "mcp_startup_timeout grant retried mcp_server_unavailable",
  },
  {
    fault: "required server: no answer to tools/list",
    seen: faults("list-hang"),
    is: "mcp_startup_timeout grant retried mcp_server_unavailable",
  },
  {
    fault: "required server: 401 to initialize",
    seen: startup("http-401-www-auth-required"),
    is: "mcp_server_auth grant final mcp_server_unavailable",
  },
  { fault: "required server: 401 to tools/list", seen: faults("list-401"), is: "mcp_server_auth grant final mcp_server_unavailable" },
  { fault: "required server: 403 to tools/list", seen: faults("list-403"), is: "mcp_server_auth grant final mcp_server_unavailable" },
  {
    fault: "required server: 500 to initialize",
    seen: startup("http-500-html-required"),
    is: "mcp_server_unreachable grant retried mcp_server_unavailable",
  },
  {
    fault: "required server: 500 to tools/list",
    seen: faults("list-500"),
    is: "mcp_server_unreachable grant retried mcp_server_unavailable",
  },
  {
    fault: "required server: connection closed at tools/list",
    seen: faults("list-closed"),
    is: "mcp_server_unreachable grant retried mcp_server_unavailable",
  },
  {
    fault: "required server: its program ends at tools/list",
    seen: faults("program-ends"),
    is: "mcp_server_unreachable grant retried mcp_server_unavailable",
  },
  {
    fault: "required server: a JSON-RPC error to tools/list",
    seen: faults("list-jsonrpc-error"),
    is: "mcp_server_protocol grant retried mcp_server_unavailable",
  },
  {
    fault: "required server: a web page to tools/list",
    seen: faults("list-html"),
    is: "mcp_server_protocol grant retried mcp_server_unavailable",
  },
  {
    fault: "required server: a bad list of tools",
    seen: faults("list-bad-result"),
    is: "mcp_server_protocol grant retried mcp_server_unavailable",
  },
  { fault: "required server: 400 to tools/list", seen: faults("list-400"), is: "mcp_server_protocol grant retried mcp_server_unavailable" },
  { fault: "required server: 404 to tools/list", seen: faults("list-404"), is: "mcp_server_protocol grant retried mcp_server_unavailable" },
  {
    fault: "required server: a bad answer to initialize",
    seen: faults("initialize-bad-result"),
    is: "mcp_server_protocol grant retried mcp_server_unavailable",
  },
  {
    fault: "two required servers: no answer, and 500",
    seen: faults("two-differ"),
    is: "mcp_startup_timeout grant retried mcp_server_unavailable mcp_server_unavailable",
  },
  {
    fault: "the servers do not offer a required tool",
    seen: faults("no-tools", { requires: ["finish"], offers: [] }),
    is: "- grant gradable required_tool_not_offered",
  },
  {
    fault: "a required tool answers 401",
    seen: faults("call-401", { requires: ["finish"] }),
    is: "- grant gradable required_tool_refused",
  },
  {
    fault: "a required tool answers 403",
    seen: faults("call-403", { requires: ["finish"] }),
    is: "- grant gradable required_tool_refused",
  },
  {
    fault: "a required tool is offered and not called",
    seen: faults("no-tools", { requires: ["finish"], offers: ["finish"] }),
    is: "- agent gradable",
  },
  {
    fault: "a tool server forgot the session: 400 and an error for no request",
    seen: until(faults("call-session-lost-400")),
    is: "wall_clock limit gradable mcp_session_lost",
  },
  {
    fault: "the same with 200",
    seen: until(faults("call-session-lost-200")),
    is: "wall_clock limit gradable mcp_session_lost",
  },
  {
    fault: "the sandbox is killed from outside while a command runs",
    seen: running({ exit: killed({ outside: true }) }),
    is: "killed_by_signal infrastructure retried",
  },
  { fault: "the model's command kills Codex", seen: running({ exit: killed() }), is: "killed_by_signal agent final" },
  { fault: "Codex crashes: SIGSEGV", seen: running({ exit: by("SIGSEGV") }), is: "killed_by_signal infrastructure retried" },
  { fault: "Codex crashes: SIGABRT", seen: running({ exit: by("SIGABRT") }), is: "killed_by_signal infrastructure retried" },
  { fault: "Codex panics: exit code 101", seen: running({ exit: exit(101) }), is: "exit_code infrastructure retried" },
  { fault: "Codex ends with exit code 0 and no end of its turn", seen: running({ exit: exit(0) }), is: "exit_code infrastructure retried" },
];

/** What the code makes of it, in the words of {@link Fault.is}. */
export async function outcomeOf({ seen }: Fault, version: Version): Promise<string> {
  const { recording, says, stopped = null, requires = [], offers, exit: given } = "0.144.4" in seen ? seen[version] : seen;
  const { stdout, stderr, exit_code: code, signal } = recording === undefined ? spoken(says ?? "") : recorded(version, recording);
  const facts = await factsOf(stdout);
  const grants = GRANTED.map((name): ToolGrant => httpGrant(name, "http://127.0.0.1:1/mcp"));
  const offered = new Map(offers === undefined ? [] : GRANTED.map((name) => [name, name === "office" ? offers : []] as const));
  const { outcome, gaps } = concludeSession(emptySecretSet, {
    invocation_id: "key",
    facts,
    transcripts: null,
    stderr: { text: stderr, startsMidStream: false },
    exit: given ?? { started: true, code, signal: signal as NodeJS.Signals | null },
    memory: { oom_killed: false, memory_limit_reached: false },
    stopped,
    requiredTools: requires,
    grantedServers: GRANTED,
    toolsNotOffered: (missing) => toolsNotOffered(missing, grants, offered),
    refusedTools: (text) => refusedTools(text, GRANTED, offered),
    profile: profileFor(version),
  });
  const { failure, incomplete_cause, cause_class } = outcome;
  const how = failure === null ? "gradable" : isBackOff(outcome) ? "waits" : failure.terminal ? "final" : "retried";
  const told = gaps.map(({ code: gap }) => gap).filter((gap) => OWN_GAPS.test(gap));
  return [failure?.cause_code ?? incomplete_cause ?? "-", cause_class ?? "-", how, ...told].join(" ");
}

/** Of the recordings, too. */
const GRANTED = ["gdpval", "office", "zeta"];
const OWN_GAPS = /^(?:mcp_|required_tool_|model_answer_)/;

function recorded(version: Version, [group, name]: readonly [string, string]): Recording {
  const found = recordings(version, group)[name];
  if (found === undefined) throw new Error(`${version} has no recording ${group}/${name}`);
  return found;
}

function spoken(message: string): Recording {
  const events = [...ANSWERED, { type: "item.completed", item: COMMAND }, { type: "turn.failed", error: { message } }];
  return { exit_code: 1, signal: null, stdout: events.map((event) => `${JSON.stringify(event)}\n`).join(""), stderr: "" };
}

/** The table, as oxfmt would align it; one row where the versions agree. */
export async function faultTable(): Promise<string> {
  const rows = [["what happens", "Codex", "cause", "class", "then", "gap"]];
  for (const fault of FAULTS) {
    const told = await Promise.all(VERSIONS.map(async (version) => ({ version: version as string, is: await outcomeOf(fault, version) })));
    const one = told.every(({ is }) => is === told[0]?.is) ? [{ version: "both", is: told[0]?.is ?? "" }] : told;
    for (const { version, is } of one) {
      const [cause = "", cause_class = "", how = "", ...gaps] = is.split(" ");
      const code = (word: string): string => (word === "-" ? "" : `\`${word}\``);
      rows.push([fault.fault, version, code(cause), code(cause_class), how, [...new Set(gaps)].map(code).join(", ")]);
    }
  }
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |\n`;
  const [head, ...body] = rows;
  return line(head!) + line(widths.map((width) => "-".repeat(width))) + body.map(line).join("");
}
