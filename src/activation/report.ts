// SPDX-License-Identifier: Apache-2.0
import { collect } from "../artifacts/collect.ts";
import { putTranscript, subagentTranscript } from "../artifacts/evidence.ts";
import { handedInPaths, type AgentCalls } from "../artifacts/submission.ts";
import { joinedThreads } from "../codex/joined-threads.ts";
import { profileToRead, unprofiledGaps } from "../codex/profile.ts";
import type { SessionFacts } from "../codex/session.ts";
import { answeredCalls } from "../codex/transcript.ts";
import type { SessionTranscripts } from "../codex/transcript-threads.ts";
import { meaningOf } from "../codex/turn-failure.ts";
import type { ObservationBundle, ObservationGap } from "../contract/observation.ts";
import type { Artifact, Timing, WorkerInfo } from "../contract/result.ts";
import { messageOf } from "../errors.ts";
import { redactTail, redactText, redactValue } from "../redact/index.ts";
import type { Sandbox } from "../sandbox/types.ts";
import type { AttemptContext } from "./attempt.ts";
import { cancelledOutcome, handedBackOutcome, outcomeOfStage, type Outcome } from "./classify.ts";
import { concludeSession, type ConcludedSession } from "./conclude.ts";
import { nothingObserved, observe, type Observed } from "./observe.ts";
import { optionalServerGaps } from "./optional-servers.ts";
import type { Granted } from "./preflight.ts";
import type { SessionPlan } from "./open-sandbox.ts";
import type { StopReason } from "./ports.ts";
import { plainEnv } from "../codex/command.ts";
import { lookAfterwards, toolsNotOffered, type OfferedTools } from "./offered-tools.ts";
import { refusedTools } from "./refused-tool.ts";
import { evidenceOf, requiredToolsMissing, responseOf } from "./response.ts";
import type { CodexEnd } from "./run-codex.ts";
import type { RunPorts } from "./run.ts";
import type { AttemptReport } from "./settle.ts";
import { asStageFailure } from "./stage-failure.ts";
import { readOwnTranscripts } from "./own-transcript.ts";

const TRANSCRIPT_UNAVAILABLE: ObservationGap = { code: "agent_artifact_unavailable", detail: "transcript" };

/** Gathers what each stage of one attempt leaves, and is asked at the end for all of it. */
export function newReport(context: AttemptContext, ports: RunPorts): ReportInProgress {
  return new ReportInProgress(context, ports);
}

class ReportInProgress {
  readonly #context: AttemptContext;
  readonly #ports: RunPorts;
  readonly #gaps: ObservationGap[] = [];
  readonly #artifacts: Artifact[] = [];
  readonly #begun: number;
  #sandbox: Sandbox | null = null;
  #granted: Granted | null = null;
  #end: CodexEnd | null = null;
  #transcripts: SessionTranscripts | null = null;
  #observed: (Omit<Observed, "gaps" | "usage"> & ConcludedSession) | null = null;
  #outcome: Outcome | null = null;
  #cleanupError: string | null = null;
  #marks: { ran?: number; ended?: number; collected?: number } = {};

  constructor(context: AttemptContext, ports: RunPorts) {
    this.#context = context;
    this.#ports = ports;
    this.#begun = context.clock();
    this.#gaps.push(...unprofiledGaps(context.codex));
  }

  checked(granted: Granted): void {
    this.#granted = granted;
    this.#gaps.push(...granted.gaps);
  }

  planned(plan: Pick<SessionPlan, "gaps">): void {
    this.#gaps.push(...plan.gaps);
  }

  opened(sandbox: Sandbox): void {
    this.#sandbox = sandbox;
  }

  kept(artifact: Artifact): void {
    this.#artifacts.push(artifact);
    this.#marks.ran = this.#context.clock();
  }

  /** Codex is gone: what it said, and what its transcripts add, is redacted here, once, and classified. */
  async ended(end: CodexEnd): Promise<void> {
    const { secrets, capture_key, activation } = this.#context;
    this.#marks.ended = this.#context.clock();
    this.#end = end;
    this.#artifacts.push(...end.artifacts);
    this.#gaps.push(...end.gaps);
    const raw = end.session.facts();
    const profile = profileToRead(this.#context.codex?.version ?? null);
    if (this.#sandbox !== null && raw.threadId !== null && !this.#isHandedBack()) {
      this.#transcripts = await readOwnTranscripts(this.#sandbox.outside.codexHome, raw, profile.transcript, this.#closeBound());
      if (this.#transcripts === null) this.#gaps.push(TRANSCRIPT_UNAVAILABLE);
    }
    const offered = await this.#offered(raw);
    const servers = activation.tool_grants.map(({ name }) => name);
    const concluded = concludeSession(secrets, {
      invocation_id: capture_key,
      facts: raw,
      transcripts: this.#transcripts,
      stderr: end.stderr,
      exit: end.exit,
      memory: end.memory,
      stopped: end.stopped,
      requiredTools: activation.required_tools,
      profile,
      grantedServers: servers,
      toolsNotOffered: (missing) => toolsNotOffered(missing, activation.tool_grants, offered),
      refusedTools: (text) => refusedTools(text, servers, offered),
    });
    const { facts, stderr, outcome, gaps } = concluded;
    this.#gaps.push(...gaps);
    const asInStderr = (text: string): string => redactText(secrets, text);
    if (facts.turnStarted && this.#granted !== null) {
      this.#gaps.push(...optionalServerGaps(this.#granted, facts.toolCalls, stderr, asInStderr));
    }
    this.#outcome = outcome;
    this.#observed = {
      ...concluded,
      invocation_id: capture_key,
      requiredTools: activation.required_tools,
      provider: this.#sandbox?.provider ?? "unknown",
      elapsed_ms: end.elapsed_ms,
    };
  }

  /** Deliverables and the transcripts, before the sandbox is stopped. A session that is handed back leaves them: it will be run again. */
  async collect(): Promise<void> {
    const { activation, attempt, secrets, evidence } = this.#context;
    const [sandbox, end] = [this.#sandbox, this.#end];
    if (sandbox === null || end === null || this.#isHandedBack()) return;
    const bound = this.#closeBound();
    const facts = end.session.facts();
    const collected = await collect({
      store: this.#ports.store,
      activation_id: activation.activation_id,
      attempt,
      workdir: { inside: sandbox.inside.workdir, outside: sandbox.outside.workdir },
      outputs: activation.outputs,
      handedIn: handedInPaths([facts, ...this.#subagents()], activation.required_tools),
      secrets,
      signal: bound,
    });
    this.#artifacts.push(...collected.artifacts);
    this.#gaps.push(...collected.gaps);
    if (facts.threadId === null || this.#transcripts === null) return;
    const files = [{ thread: facts.threadId, path: "transcript.jsonl" }];
    for (const { thread_id } of this.#transcripts.subagents) files.push({ thread: thread_id, path: subagentTranscript(thread_id) });
    for (const { thread, path } of files) {
      const transcript = await putTranscript(evidence, sandbox.outside.codexHome, thread, bound, path);
      if (transcript !== null) this.#artifacts.push(transcript);
      else this.#gaps.push(thread === facts.threadId ? TRANSCRIPT_UNAVAILABLE : { ...TRANSCRIPT_UNAVAILABLE, detail: path });
    }
  }

  /** What each did, not redacted. */
  #subagents(): AgentCalls[] {
    if (this.#transcripts === null) return [];
    const { capture_key, codex } = this.#context;
    const [, ...threads] = joinedThreads(this.#transcripts, capture_key, profileToRead(codex?.version ?? null).transcript);
    return threads.map(({ conversation: items, toolCalls }) => ({ items, toolCalls }));
  }

  /** What the granted servers offer, looked at again only where that may explain how the session ended. */
  async #offered(raw: SessionFacts): Promise<OfferedTools> {
    const { activation, codex } = this.#context;
    const known = this.#granted?.offered ?? new Map<string, readonly string[]>();
    const means = meaningOf(raw.turnFailures.at(-1) ?? "", profileToRead(codex?.version ?? null));
    const isRefusal = means !== null && "cause" in means && means.cause === "model_tool_refused";
    const isOpen = isRefusal || (raw.turnCompleted && requiredToolsMissing(raw, activation.required_tools).length > 0);
    return isOpen && !this.#isHandedBack() ? lookAfterwards(activation.tool_grants, known, plainEnv(activation.sandbox.env)) : known;
  }

  #isHandedBack(): boolean {
    const kind = this.#end?.stopped?.kind;
    return kind === "shutdown" || kind === "lock_lost";
  }

  #closeBound(): AbortSignal {
    return AbortSignal.timeout(this.#context.activation.codex.session_close_timeout_seconds * 1000);
  }

  /** A stage threw. What Codex's own end decided stays; else this is the outcome. */
  broken(error: unknown, signal: AbortSignal): void {
    const stopped = signal.aborted ? (signal.reason as StopReason) : null;
    if (this.#outcome !== null) {
      this.#gaps.push({ code: "agent_artifact_unavailable", detail: redactText(this.#context.secrets, messageOf(error)).slice(0, 500) });
    } else if (stopped !== null) {
      const { secrets } = this.#context;
      this.#outcome = stopped.kind === "cancelled" ? cancelledOutcome(redactValue(secrets, stopped.mark)) : handedBackOutcome(stopped.kind);
    } else {
      const { failure, gaps } = asStageFailure(error, "unknown");
      this.#gaps.push(...gaps);
      this.#outcome = outcomeOfStage({ ...failure, failure_reason: redactTail(this.#context.secrets, failure.failure_reason) });
    }
    this.#ports.log.warn(
      { activation_id: this.#context.activation.activation_id, attempt: this.#context.attempt, err: error },
      "a stage failed",
    );
  }

  async destroySandbox(): Promise<void> {
    this.#marks.collected = this.#context.clock();
    if (this.#sandbox === null) return;
    const { cleanup_error } = await this.#sandbox.destroy();
    this.#cleanupError = cleanup_error === null ? null : redactText(this.#context.secrets, cleanup_error);
    if (cleanup_error !== null) {
      this.#ports.abandoned.add(this.#sandbox);
      this.#ports.log.error({ sandbox: this.#sandbox.id, cleanup_error }, "a sandbox could not be removed; it is tried again");
    }
  }

  finish(): AttemptReport {
    const outcome = this.#outcome ?? outcomeOfStage(asStageFailure(new Error("the attempt ended without an outcome"), "unknown").failure);
    const observed = this.#observed;
    const worker = this.#worker();
    return {
      outcome,
      observations: this.#bundle(outcome),
      response: observed === null ? null : responseOf(this.#context, outcome, observed.facts, worker),
      evidence: observed === null ? null : evidenceOf(observed, this.#cleanupError),
      artifacts: this.#artifacts,
      timing: this.#timing(),
      worker,
      usage: observed?.facts.usage ?? null,
      used: { model_calls: this.#answeredCalls(), tokens: observed?.facts.usage?.total_tokens ?? 0 },
    };
  }

  #answeredCalls(): number {
    if (this.#transcripts === null) return 0;
    const { root, subagents } = this.#transcripts;
    return subagents.reduce((sum, { transcript }) => sum + answeredCalls(transcript), answeredCalls(root));
  }

  #bundle(outcome: Outcome): ObservationBundle {
    if (this.#observed === null || this.#sandbox === null) return nothingObserved(this.#context.capture_key, outcome, this.#gaps);
    return observe({ ...this.#observed, usage: this.#sandbox.usage(), gaps: this.#gaps });
  }

  #worker(): WorkerInfo {
    return {
      ...this.#ports.worker,
      codex_version: this.#context.codex?.version ?? null,
      sandbox_provider: this.#sandbox?.provider ?? null,
    };
  }

  #timing(): Timing {
    const now = this.#context.clock();
    const { ran = now, ended = ran, collected = now } = this.#marks;
    return {
      queued_ms: this.#context.queued_ms,
      setup_ms: Math.round(ran - this.#begun),
      run_ms: Math.round(ended - ran),
      collect_ms: Math.round(Math.max(0, collected - ended)),
    };
  }
}
