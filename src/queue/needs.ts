// SPDX-License-Identifier: Apache-2.0
import { sealedWith, type SealedActivation } from "../activation/seal.ts";
import { exactProfile } from "../codex/profile.ts";
import type { CauseCode, Failure } from "../contract/failure.ts";
import { failure } from "./end-without-run.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { liveWorkers, type WorkerFacts } from "./worker-lease.ts";

/** Something a worker must have to run an activation. */
export type Need =
  | { kind: "secret_key"; value: string }
  | { kind: "schema_minor"; value: number }
  | { kind: "provider"; value: string }
  | { kind: "codex_version"; value: string };

/** How the end is called of which nobody had it. */
const CAUSES: Record<Need["kind"], CauseCode> = {
  secret_key: "secret_key_missing",
  schema_minor: "unknown",
  provider: "sandbox_failed",
  codex_version: "codex_version_mismatch",
};

/** What an activation asks of its worker; read without opening or validating it. */
export function needsOf(sealed: SealedActivation): Need[] {
  const needs: Need[] = sealedWith(sealed).map((value) => ({ kind: "secret_key", value }));
  const minor = sealed["schema_minor"];
  if (typeof minor === "number" && minor > 0) needs.push({ kind: "schema_minor", value: minor });
  const provider = textIn(sealed["sandbox"], "provider");
  if (provider !== null) needs.push({ kind: "provider", value: provider });
  const version = textIn(sealed["codex"], "version");
  if (version !== null) needs.push({ kind: "codex_version", value: version });
  return needs;
}

export function meets(worker: WorkerFacts, need: Need): boolean {
  switch (need.kind) {
    case "secret_key":
      return worker.key_ids.includes(need.value);
    case "schema_minor":
      return worker.schema_minor >= need.value;
    case "provider":
      return worker.providers.includes(need.value);
    default:
      return worker.codex_versions.includes(need.value);
  }
}

/** What is missing for a job with these needs, over all of these workers; null = one of them can run it. Pure. */
export function missingIn(workers: readonly WorkerFacts[], needs: readonly Need[]): Need[] | null {
  if (workers.some((worker) => needs.every((need) => meets(worker, need)))) return null;
  const nobodys = needs.filter((need) => !workers.some((worker) => meets(worker, need)));
  return nobodys.length > 0 ? nobodys : [...needs]; // each of them is there, but with no worker all of them
}

/** e.g. "codex_version 0.171.0, provider host". */
export function needsText(needs: readonly Need[]): string {
  return needs.map(({ kind, value }) => `${kind} ${value}`).join(", ");
}

/** What to do where there is a command for it; "" else. Pure. */
export function remedyFor(needs: readonly Need[]): string {
  const version = needs.find(({ kind }) => kind === "codex_version")?.value;
  if (version === undefined) return "";
  const unknown =
    exactProfile(String(version)) === null ? ', and unknown_version = "try" in its [codex] since that version has no profile' : "";
  return ` (on a worker's machine, before it starts: rollcall codex install ${version}${unknown})`;
}

/**
 * For a job that the asking worker cannot run: null = it waits on, because some live worker can or it has not waited
 * long; otherwise its end, which lists what was missing.
 */
export async function noCapableWorker(queues: Queues, jobId: string, needs: readonly Need[]): Promise<Failure | null> {
  const { redis, settings } = queues;
  const missing = missingIn(await liveWorkers(queues), needs);
  if (missing === null) {
    await redis.del(keys.unable(jobId));
    return null;
  }
  const [seconds] = await redis.time();
  const now = Number(seconds) * 1_000;
  await redis.set(keys.unable(jobId), now, "PX", settings.keep_ended_ms, "NX");
  const waitedMs = now - Number((await redis.get(keys.unable(jobId))) ?? now);
  if (waitedMs < settings.no_capable_worker_ms) return null;
  const reason = `no live worker could run it for ${Math.round(waitedMs / 1_000)} s; missing: ${needsText(missing)}${remedyFor(missing)}`;
  return failure("agent_run_error", CAUSES[missing[0]!.kind], reason);
}

function textIn(holder: unknown, key: string): string | null {
  const value = holder !== null && typeof holder === "object" ? (holder as Record<string, unknown>)[key] : null;
  return typeof value === "string" ? value : null;
}
