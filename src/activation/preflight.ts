// SPDX-License-Identifier: Apache-2.0
import { isUsableServerName, type McpGrant, type ToolGrant } from "../contract/grant.ts";
import { gravestCause, MAX_REASON_CHARACTERS } from "../contract/failure.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { CodexCommand } from "../codex/command.ts";
import type { CodexProfile } from "../codex/profile.ts";
import { causeOf, type Finding, type ServerCheck } from "../preflight/finding.ts";
import { alteredTools, toolsFinding } from "../preflight/tools.ts";
import { emptySecretSet, redactTail, redactText, type SecretSet } from "../redact/index.ts";
import type { Sandbox } from "../sandbox/types.ts";
import type { AttemptContext } from "./attempt.ts";
import type { OfferedTools } from "./offered-tools.ts";
import { stageFailure } from "./stage-failure.ts";

/** What is left of the grants after the servers were looked at. The grants hold their secrets; the gaps are redacted. */
export interface Granted {
  /** Without the optional servers that are not usable: Codex must not wait for them. */
  grants: ToolGrant[];
  /** Names of the servers that were looked at and are usable. */
  checked: ReadonlySet<string>;
  /** Of the servers that were looked at. */
  offered: OfferedTools;
  gaps: ObservationGap[];
}

/** Codex's own, when the activation sets none (0.144.4 and 0.171.0). */
const STARTUP_SECONDS = 30;
const MAX_REASON = 600;
const MAX_TOOLS_SHOWN = 20;

/**
 * Connects to the granted servers before Codex does, all at once. Optional ones that are not usable are left out and
 * recorded; throws StageFailure, with a gap for each, when required ones are not. Throws the signal's reason when told to stop.
 */
export async function preflight(context: AttemptContext, sandbox: Sandbox, codex: Codex, signal: AbortSignal): Promise<Granted> {
  const { activation, secrets } = context;
  const { mcp_startup_timeout_seconds, timeout_seconds } = activation.codex;
  const seconds = mcp_startup_timeout_seconds ?? Math.min(STARTUP_SECONDS, timeout_seconds);
  const wanted = activation.tool_grants.filter(isChecked);
  if (wanted.length === 0) return grantedAfter(activation.tool_grants, new Map(), codex.profile, secrets);
  context.progress({ stage: "starting", note: "looking at the tool servers" });
  const { checkServers } = await import("../preflight/check-servers.ts"); // with the MCP SDK: half a second
  const checks = await checkServers(wanted, { sandbox, command: codex.command, bound: { seconds, signal } });
  return grantedAfter(activation.tool_grants, checks, codex.profile, secrets);
}

/** The Codex that will be started. */
interface Codex {
  profile: CodexProfile;
  command: CodexCommand;
}

/** Whether a grant's server is looked at; see `preflight` of the grant. Pure. */
export function isChecked(grant: ToolGrant): grant is McpGrant {
  if (grant.type !== "mcp" || !isUsableServerName(grant.name)) return false;
  return grant.preflight ?? (!grant.required || (grant.expected_tools ?? []).length > 0);
}

/** Pure but for what it throws; see {@link preflight}. */
export function grantedAfter(
  grants: readonly ToolGrant[],
  checks: ReadonlyMap<string, ServerCheck>,
  profile: CodexProfile,
  secrets: SecretSet,
): Granted {
  const failed: { grant: ToolGrant; finding: Finding }[] = [];
  const gaps: ObservationGap[] = [];
  for (const grant of grants) {
    const check = checks.get(grant.name);
    if (check === undefined) continue;
    const finding = "finding" in check ? check.finding : toolsFinding(check.tools, grant.expected_tools ?? [], profile);
    if (finding !== null) {
      failed.push({ grant, finding });
      gaps.push(unavailableGap(secrets, grant.name, finding));
    } else if ("tools" in check) {
      gaps.push(...alteredGap(secrets, grant.name, alteredTools(check.tools, profile)));
    }
  }
  const required = failed.filter(({ grant }) => grant.required);
  if (required.length > 0) throw requiredFailed(secrets, required, gaps);
  const left = new Set(failed.map(({ grant }) => grant.name));
  return {
    grants: grants.filter(({ name }) => !left.has(name)),
    checked: new Set([...checks.keys()].filter((name) => !left.has(name))),
    offered: new Map([...checks].map(([name, check]) => [name, "tools" in check && !left.has(name) ? check.tools : []])),
    gaps,
  };
}

function requiredFailed(
  secrets: SecretSet,
  failed: readonly { grant: ToolGrant; finding: Finding }[],
  gaps: readonly ObservationGap[],
): Error {
  const server_names = failed.map(({ grant }) => grant.name);
  const beginning = "Codex was not started: a required tool server is not usable.";
  const share = Math.min(MAX_REASON, Math.floor((MAX_REASON_CHARACTERS - beginning.length) / failed.length));
  const lines = failed.map(({ grant: { name }, finding }) => {
    const where = `\n${name.slice(0, share / 2)} (${finding.phase}, ${finding.case}): `;
    return where + reasonOf(secrets, finding, Math.max(0, share - where.length));
  });
  const cause = gravestCause(failed.map(({ finding }) => causeOf(finding)));
  return stageFailure(cause, beginning + lines.join(""), { server_names, gaps });
}

function unavailableGap(secrets: SecretSet, server_name: string, finding: Finding): ObservationGap {
  const { phase, case: kind } = finding;
  const detail = { server_name, phase, case: kind, reason: reasonOf(secrets, finding, MAX_REASON) };
  return { code: "mcp_server_unavailable", detail: JSON.stringify(detail) };
}

function alteredGap(secrets: SecretSet, server_name: string, altered: readonly string[]): ObservationGap[] {
  if (altered.length === 0) return [];
  const tools = altered.slice(0, MAX_TOOLS_SHOWN).map((name) => redactTail(secrets, name, { maxChars: 100 }));
  return [{ code: "mcp_tool_names_altered", detail: JSON.stringify({ server_name, tools, count: altered.length }) }];
}

/** One line; what is ours first, then as much as fits of what the server said: redacted whole, shortened after that. */
function reasonOf(secrets: SecretSet, { what, said }: Finding, maxChars: number): string {
  const ours = redactTail(secrets, what, { maxChars });
  const room = maxChars - ours.length - 2;
  if (said === null || room < 20) return ours;
  const { text, ...window } = said;
  const theirs = redactText(secrets, text, window).replaceAll(/\s+/g, " ").trim();
  return theirs === "" ? ours : `${ours}: ${redactTail(emptySecretSet, theirs, { maxChars: room })}`;
}
