// SPDX-License-Identifier: Apache-2.0
import pRetry from "p-retry";
import type { ArtifactStore } from "../artifacts/types.ts";
import { meantBy } from "../config/nearest.ts";
import { RollcallError } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import { emptySecretSet } from "../redact/index.ts";
import { openCaller, type Caller } from "../resources/call.ts";
import { CallFailure, isRetryable } from "../resources/call-failure.ts";
import { lastVerification, putVerification, readRolloutResult } from "../resources/documents.ts";
import { readRow } from "../resources/rows.ts";
import type { ResourcesLimits, ResourcesServer } from "../resources/server.ts";
import { askVerifier } from "../resources/verify-step.ts";
import { completing } from "./complete-results.ts";
import { openOutputDir, type OutputDir } from "./output-dir.ts";
import { openResultsFiles, type ResultsFiles } from "./results-files.ts";
import { openRowFile } from "./row-file.ts";
import { readSummary, summarise } from "./summary.ts";
import type { ResultFacts } from "./facts.ts";

/** Verifications at once: a judge may be asked in each. */
const AT_ONCE = 4;

export interface ReverifyRequest {
  out: string;
  /** Activation or task ids; null = those that have no verification. */
  ids: readonly string[] | null;
  /** All that can be scored, again. */
  all: boolean;
  server: Omit<ResourcesServer, "protocol">;
  limits: ResourcesLimits;
  openStore(defaultRoot: string): Promise<ArtifactStore>;
  say(line: string): void;
  signal: AbortSignal;
}

export interface ReverifyAnswer {
  verified: number;
  failed: number;
}

/**
 * Has finished rollouts of an output directory scored again: the same row and the same response are sent. Their sessions are closed,
 * so no cookie goes with it, and a server that scores by what a session left with it will refuse. Each new answer is kept in the store and
 * is a new line of results.jsonl. Throws RollcallError when nothing can be verified.
 */
export async function reverify(request: ReverifyRequest): Promise<ReverifyAnswer> {
  const out = await openOutputDir(request.out);
  const caller = openCaller();
  try {
    const protocol = protocolOf(out);
    await requireReverify(caller, request);
    const store = await request.openStore(out.file("artifacts"));
    const raw = await openResultsFiles({ results: out.file("results"), failures: out.file("failures") });
    const rows = await openRowFile(out.file("rows"));
    const files = rows === null ? raw : completing(raw, { out: out.path, rows, store });
    try {
      const wanted = wantedOf(files, request);
      const answer: ReverifyAnswer = { verified: 0, failed: 0 };
      const queue = wanted.values();
      const work = async (): Promise<void> => {
        for (const { activation_id } of queue) {
          if (request.signal.aborted) return;
          const why = await verifyOne({ ...request, caller, store, files, server: { ...request.server, protocol } }, activation_id);
          if (why === null) answer.verified++;
          else answer.failed++;
          if (why !== null) request.say(`${activation_id}: not verified: ${why}`);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      return answer;
    } finally {
      await rows?.close();
      await files.close();
      await tellSummary(out, files);
    }
  } finally {
    await caller.close();
    await out.close();
  }
}

/** null: it is verified. */
async function verifyOne(
  parts: { caller: Caller; store: ArtifactStore; files: ResultsFiles; server: ResourcesServer } & Pick<
    ReverifyRequest,
    "limits" | "signal"
  >,
  activationId: string,
): Promise<string | null> {
  const { store, server, files, limits, signal } = parts;
  const result = await readRolloutResult(store, activationId);
  if (result?.rollout === undefined) return "its result is not in the artifact store";
  const row = await readRow(store, result.rollout.row_sha256);
  try {
    const verification = await pRetry(() => askVerifier(parts, { server, row, result, cookies: {}, secrets: emptySecretSet, signal }), {
      retries: limits.verify_tries - 1,
      minTimeout: 1_000,
      maxTimeout: 30_000,
      signal,
      shouldRetry: ({ error }) => error instanceof CallFailure && isRetryable(error.fault),
    });
    const { count } = await lastVerification(store, activationId, result.generation);
    await putVerification(store, result, count, verification);
  } catch (error) {
    if (error instanceof CallFailure) return error.message;
    if (signal.aborted) return "stopped";
    throw error;
  }
  await files.take((await readRolloutResult(store, activationId))!);
  return null;
}

function wantedOf({ recorded }: ResultsFiles, { ids, all }: ReverifyRequest): ResultFacts[] {
  const scorable = [...recorded.values()].filter(
    ({ status, rollout }) => rollout !== undefined && (status === "completed" || status === "incomplete"),
  );
  if (ids === null) return all ? scorable : scorable.filter(({ rollout }) => rollout?.verified === false);
  const named = (id: string) => scorable.filter(({ activation_id, task_id }) => activation_id === id || task_id.task_id === id);
  const unknown = ids.filter((id) => named(id).length === 0);
  if (unknown.length > 0) {
    const list = unknown
      .slice(0, 5)
      .map((id) => JSON.stringify(id.slice(0, 80)))
      .join(", ");
    const meant = meantBy(
      unknown[0]!,
      scorable.flatMap(({ activation_id, task_id }) => [activation_id, task_id.task_id]),
    );
    throw new RollcallError(
      "id_unknown",
      `no result that could be verified is called ${list}${unknown.length > 5 ? ", ..." : ""}: ` +
        (meant.length === 0 ? "give ids of results.jsonl" : `did you mean ${meant.join(", ")}?`),
    );
  }
  return [...new Set(ids.flatMap(named))];
}

function protocolOf({ path, manifest }: OutputDir): ResourcesServer["protocol"] {
  if (manifest === null) throw new RollcallError("out_empty", `${path} holds no run (there is no manifest.json)`);
  const resources = manifest.settings["resources"];
  if (resources == null || typeof resources !== "object" || Array.isArray(resources))
    throw new RollcallError("resources_missing", `the run in ${path} had no resources server, so there is nothing to verify`);
  return resources["protocol"] === "row" ? "row" : "session";
}

/** Servers of Gym say whether they can; one that does not know the question is asked all the same. */
async function requireReverify(caller: Caller, { server, limits, signal }: ReverifyRequest): Promise<void> {
  const call = {
    cookies: {},
    timeoutMs: limits.close_timeout_ms,
    maxAnswerBytes: limits.max_answer_bytes,
    secrets: emptySecretSet,
    signal,
  };
  try {
    const { value } = await caller.get({ ...call, url: `${server.url}/reverify_mode` });
    if (value === "unsupported")
      throw new RollcallError(
        "reverify_unsupported",
        `the resources server ${server.url} says that it cannot verify again (reverify_mode: unsupported)`,
      );
  } catch (error) {
    if (!(error instanceof CallFailure)) throw error;
    if (error.fault.kind === "unreachable")
      throw new RollcallError("resources_unreachable", `the resources server ${server.url}: ${error.message}`);
  }
}

/** Of the last start; only what verifying changed. */
async function tellSummary(out: OutputDir, files: ResultsFiles): Promise<void> {
  const path = out.file("summary");
  const summary = await readSummary(path);
  if (summary === null) return;
  const now = summarise(files.recorded.values(), {
    runId: summary.run_id,
    total: summary.total,
    wallMs: summary.wall_ms,
    interrupted: summary.interrupted,
  });
  await replaceFile(
    path,
    `${JSON.stringify({ ...summary, rewards: now.rewards, ...(now.unverified === undefined ? {} : { unverified: now.unverified }) }, null, 2)}\n`,
  );
}
