// SPDX-License-Identifier: Apache-2.0
import type { ObservationGap } from "../contract/observation.ts";
import type { Artifact, Evidence } from "../contract/result.ts";
import type { ExplainedAttempt, ExplainedServer, Explanation } from "../activation/explain.ts";
import { usageText } from "../contract/usage.ts";
import { modelCallLines } from "./model-calls-text.ts";
import { printable } from "../printable.ts";
import { durationText } from "../contract/figures.ts";
import { amount } from "./summary-table.ts";

const MAX_GAP = 200;
const MAX_FIELDS = 2_000;

/** An explanation as lines for a terminal. Pure. */
export function explanationText(explanation: Explanation): string {
  const { activation_id, task_id, run_id, generation, capture_key, attempts, ending, artifacts, usage, timing, rollout } = explanation;
  const again = generation === 0 ? "" : `, generation ${generation}`;
  const lines = [
    `${activation_id}: ${ending.status}`,
    `asked     task ${task_id.taskset}/${task_id.task_id} of run ${run_id}${again}, attempts: ${attempts.length}, last capture key ${capture_key}`,
    ...(timing?.queued_ms == null ? [] : [`queued    ${durationText(timing.queued_ms)} before its last attempt`]),
    ...attempts.flatMap(attemptLines),
    "",
    `end       ${endingText(explanation)}`,
    ...indented(reasonUnlessTold(explanation)),
    ...(rollout === undefined ? [] : rolloutLines(rollout)),
    ...usageLines(usage, attempts),
    ...artifacts.map((artifact) => `artifact  ${artifactText(artifact)}`),
  ];
  return lines.map(printable).join("\n");
}

/** What all attempts took, and of which nothing is known. */
function usageLines(usage: Explanation["usage"], attempts: readonly ExplainedAttempt[]): string[] {
  const unknown = attempts.filter(({ usage_unknown }) => usage_unknown).length;
  const words = [
    ...(usage === null ? [] : [`tokens: ${usageText(usage, amount)}`]),
    ...(unknown === 0 ? [] : [`nothing is known of what ${unknown} of ${attempts.length} attempts took`]),
  ];
  return words.length === 0 ? [] : [`usage     ${words.join("; ")}`];
}

/** How it was scored, and how it went with its resources server. */
function rolloutLines(rollout: NonNullable<Explanation["rollout"]>): string[] {
  const { reward, verifications, verification, verification_cut, verification_failure, cleanup_error } = rollout;
  const fields = Object.keys(verification ?? {}).length === 0 ? "" : JSON.stringify(verification);
  const times = verifications > 1 ? `, verified ${verifications} times` : "";
  return [
    `reward    ${reward ?? "none"}${times}`,
    ...(verification_failure === null ? [] : [`unscored  ${verification_failure.cause_code} (${verification_failure.failure_kind})`]),
    ...indented(verification_failure?.failure_reason ?? ""),
    ...(fields === "" ? [] : [`verifier  ${shortened(fields, MAX_FIELDS)}${verification_cut ? " (large fields were left out)" : ""}`]),
    ...(cleanup_error === null ? [] : [`session   not closed: ${cleanup_error}`]),
  ];
}

function attemptLines(attempt: ExplainedAttempt): string[] {
  const { worker, started_at, ended_at, charged, servers, tool_calls, evidence, usage, usage_unknown, gaps } = attempt;
  const where = [`worker ${worker.id}`, `Codex ${worker.codex_version ?? "unknown"}`, worker.sandbox_provider ?? "no sandbox"].join(", ");
  return [
    "",
    `attempt ${attempt.attempt} (${attempt.capture_key})`,
    `  ${clock(started_at)}  started: ${where}`,
    ...servers.map((server) => `  ${BLANK}  server ${serverText(server, tool_calls)}`),
    ...tool_calls.map((call) => {
      const tool = call.server_name === undefined ? call.tool_name : `${call.tool_name} (${call.server_name})`;
      const error = call.error_type === null ? "" : `: ${call.error_type}`;
      return `  ${clock(call.started_at ?? call.completed_at)}  call   ${tool}  ${durationText(call.duration_ms)}  ${call.status}${error}`;
    }),
    `  ${clock(ended_at)}  ended: ${endingText(attempt)}${charged ? "" : ", not charged"}`,
    ...indented(attempt.ending.failure?.failure_reason ?? ""),
    ...(evidence === null ? [`  ${BLANK}  because Codex was not launched`] : [`  ${BLANK}  because ${evidenceText(evidence)}`]),
    ...(usage === null ? [] : [`  ${BLANK}  tokens ${usageText(usage, amount)}`]),
    ...(usage_unknown ? [`  ${BLANK}  tokens unknown`] : []),
    ...(evidence === null ? [] : modelCallLines(evidence).map(({ at, text }) => `  ${at === null ? BLANK : clock(at)}  ${text}`)),
    ...gapLines(gaps).map((line) => `  ${BLANK}  not observed: ${line}`),
  ];
}

const BLANK = " ".repeat(12);

/** "16:00:00.123", UTC. */
function clock(instant: string | null): string {
  return instant === null ? "at ?".padEnd(BLANK.length) : instant.slice(11, 23);
}

function serverText({ name, required, state, detail }: ExplainedServer, calls: ExplainedAttempt["tool_calls"]): string {
  const kind = required === null ? "" : required ? " (required)" : " (optional)";
  const used = calls.filter(({ server_name }) => server_name === name).length;
  const words = {
    granted: `granted, ${used === 1 ? "1 call" : `${used} calls`}`,
    skipped: "skipped",
    unavailable: "unavailable",
    unknown: "not known to have been there",
  };
  return `${name}${kind}: ${words[state]}${detail === null ? "" : `: ${detail}`}`;
}

function endingText({ ending }: Pick<Explanation, "ending">): string {
  const { status, incomplete_cause, cause_class, failure } = ending;
  const whose = cause_class == null ? "" : `, class ${cause_class}`;
  if (failure === null) return `${status}${incomplete_cause == null ? "" : ` (${incomplete_cause})`}${whose}`;
  const { failure_kind, cause_code, server_names, stage, terminal } = failure;
  const servers = server_names.length === 0 ? "" : ` of ${server_names.join(", ")}`;
  return `${status}: ${cause_code}${servers} (${failure_kind}, stage ${stage}, ${terminal ? "final" : "may be tried again"})${whose}`;
}

function evidenceText(evidence: Evidence): string {
  const { turn_started, turn_completed, model_answered, exit_code, signal, stopped, launch_error, elapsed_ms, reconnects } = evidence;
  const told =
    model_answered === null ? "whether the model answered is unknown" : `the model ${model_answered ? "answered" : "never answered"}`;
  return [
    launch_error !== null
      ? "the sandbox could not start it"
      : turn_completed
        ? "the turn completed"
        : turn_started
          ? "a turn started"
          : "no turn started",
    told,
    signal !== null ? `killed by ${signal}` : `exit code ${exit_code ?? "unknown"}`,
    ...(evidence.oom_killed === true ? [outOfMemoryText(evidence)] : []),
    ...(stopped == null ? [] : [`stopped by ${stopped.kind}`]),
    `${durationText(elapsed_ms)} measured`,
    ...(reconnects > 0 ? [`${reconnects} reconnects`] : []),
    ...(evidence.required_tools_missing.length > 0 ? [`never called: ${evidence.required_tools_missing.join(", ")}`] : []),
    ...(evidence.cleanup_error === null ? [] : [`clean-up failed: ${evidence.cleanup_error}`]),
  ].join("; ");
}

/** Which process, the kernel does not count. */
function outOfMemoryText({ memory_limit_reached }: Evidence): string {
  return `the kernel killed a process, as ${memory_limit_reached === true ? "the sandbox reached its memory limit" : "the host ran short of memory"}`;
}

/** Those that say no more than their code share a line. */
function gapLines(gaps: readonly ObservationGap[]): string[] {
  const bare = [...new Set(gaps.flatMap(({ code, detail }) => (detail === undefined ? [code] : [])))];
  const told = gaps.flatMap(({ code, detail }) => (detail === undefined ? [] : [`${code}: ${shortened(detail, MAX_GAP)}`]));
  return [...told, ...(bare.length === 0 ? [] : [bare.join(", ")])];
}

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)} ...`;
}

function artifactText({ path, kind, bytes, source, quarantined }: Artifact): string {
  const from = source === null ? "" : `, from ${source}`;
  return `${path}  ${kind}, ${bytes} bytes${from}${quarantined ? ", QUARANTINED: it holds a secret" : ""}`;
}

/** The reason of the end, where the last attempt's is another. */
function reasonUnlessTold({ ending, attempts }: Explanation): string {
  const reason = ending.failure?.failure_reason ?? "";
  return reason === attempts.at(-1)?.ending.failure?.failure_reason ? "" : reason;
}

function indented(text: string): string[] {
  return text.trim() === ""
    ? []
    : text
        .trimEnd()
        .split("\n")
        .map((line) => `  ${BLANK}  | ${line}`);
}
