// SPDX-License-Identifier: Apache-2.0
import type { SessionFacts } from "../codex/session.ts";
import type { CodexProfile } from "../codex/profile.ts";
import { startupCause } from "../codex/startup.ts";
import type { StderrEnd } from "../codex/stderr.ts";
import { subagentTranscript } from "../artifacts/evidence.ts";
import { joinTranscripts, type JoinedSession } from "../codex/transcript-join.ts";
import type { SessionTranscripts } from "../codex/transcript-threads.ts";
import { verdictOf, type SessionEnd, type Verdict } from "../codex/verdict.ts";
import type { ObservationGap } from "../contract/observation.ts";
import { redactTail, redactText, redactValue, type SecretSet } from "../redact/index.ts";
import type { MemoryEnd, SandboxExit } from "../sandbox/types.ts";
import { classify, sessionEnd, type Outcome } from "./classify.ts";
import { environmentGaps } from "./environment-gaps.ts";
import { excerpts, withExcerpts } from "./excerpt.ts";
import { modelCallGaps } from "./model-calls.ts";
import { redactFacts, redactThread } from "./observe.ts";
import { transcriptGaps } from "./own-transcript.ts";
import type { RefusedTools } from "./refused-tool.ts";
import { requiredToolsMissing } from "./response.ts";
import type { Stopped } from "./run-codex.ts";

/** All that the end of a session is concluded from; texts as they came. */
export interface SeenSession {
  invocation_id: string;
  facts: SessionFacts;
  /** Codex's own account; null = there is none. */
  transcripts: SessionTranscripts | null;
  stderr: Pick<StderrEnd, "text" | "startsMidStream">;
  exit: SandboxExit;
  memory: MemoryEnd;
  stopped: Stopped;
  requiredTools: readonly string[];
  grantedServers: readonly string[];
  /** Of the required tools, those that no granted server offered, where that is known. */
  toolsNotOffered: (missing: readonly string[]) => readonly string[];
  /** Which granted tools a model server means that refuses one; see refused-tool.ts. */
  refusedTools: (text: string) => RefusedTools;
  /** Of the Codex that ran it. */
  profile: CodexProfile;
}

/** What a session came to. Every text in it is redacted. */
export interface ConcludedSession {
  facts: SessionFacts;
  native: Pick<JoinedSession, "threads" | "joinKeysKnown" | "compactionsKnown">;
  exit: SandboxExit;
  memory: MemoryEnd;
  stopped: Stopped;
  verdict: Verdict;
  end: SessionEnd;
  outcome: Outcome;
  stderr: string;
  /** Of the transcripts, and of what is left out of the conversations. */
  gaps: ObservationGap[];
}

/** Joins, redacts and classifies a session: once when Codex has ended, and again whenever its evidence is replayed. Pure. */
export function concludeSession(secrets: SecretSet, seen: SeenSession): ConcludedSession {
  const text = (value: string): string => redactValue(secrets, value);
  const outputs = new Map(seen.facts.items.flatMap((item) => (item.type === "function_call_output" ? [[item.id, item.output]] : [])));
  const joined = joinTranscripts(seen.facts, seen.transcripts, seen.invocation_id, seen.profile.transcript);
  const { facts, gaps } = withExcerpts(redactFacts(secrets, joined.facts), seen.invocation_id, (itemId) => text(outputs.get(itemId) ?? ""));
  const threads = joined.threads.map((thread) => {
    const redacted = redactThread(secrets, thread);
    const { items, gaps: shortened } = excerpts(redacted.conversation, thread.invocation_id, () => subagentTranscript(thread.thread_id));
    gaps.push(...shortened);
    return { ...redacted, conversation: items };
  });
  const exit = seen.exit.started ? seen.exit : { started: false as const, detail: redactTail(secrets, seen.exit.detail) };
  const stopped = redactValue(secrets, seen.stopped);
  const end = sessionEnd(exit, stopped);
  const verdict = verdictOf(seen.facts, end, seen.profile);
  const window = { startsMidStream: seen.stderr.startsMidStream, endsAtCut: true };
  const stderr = redactText(secrets, seen.stderr.text, window);
  const { memory } = seen;
  const missing = requiredToolsMissing(facts, seen.requiredTools);
  const environment = { requiredToolsMissing: missing, requiredToolsNotOffered: seen.toolsNotOffered(missing) };
  const refused = seen.refusedTools(seen.facts.turnFailures.at(-1) ?? "");
  const outcome = classify({
    exit,
    memory,
    stopped,
    facts,
    ...environment,
    refusedTools: { ...refused, tools: refused.tools.map(text) },
    runningCommands: joined.runningCommands.map(text),
    verdict,
    errorText: "error" in verdict ? redactTail(secrets, verdict.error) : "",
    stderr: seen.stderr.text,
    stderrTail: redactTail(secrets, seen.stderr.text, window),
    grantedServers: seen.grantedServers,
    profile: seen.profile,
  });
  return {
    facts,
    native: { threads, joinKeysKnown: joined.joinKeysKnown, compactionsKnown: joined.compactionsKnown },
    exit,
    memory,
    stopped,
    verdict,
    end,
    outcome,
    stderr,
    gaps: [
      ...transcriptGaps(joined, seen.invocation_id, text),
      ...modelCallGaps(joined.threads, seen.invocation_id),
      ...gaps,
      ...environmentGaps({
        ...environment,
        invocation_id: seen.invocation_id,
        facts,
        outcome,
        stopped,
        startup: verdict.kind === "startup_failed" ? startupCause(seen.stderr.text, seen.grantedServers, seen.profile) : null,
      }),
    ],
  };
}
