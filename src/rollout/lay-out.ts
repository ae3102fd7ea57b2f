// SPDX-License-Identifier: Apache-2.0
import { createWriteStream } from "node:fs";
import { link, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { freePaths } from "../artifacts/free-paths.ts";
import { artifactPath } from "../artifacts/layout.ts";
import { gapList } from "../artifacts/skips.ts";
import { lastHandIn } from "../artifacts/submission.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { ActivationResult, Artifact } from "../contract/result.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { isDiskFull } from "../host/disk-full.ts";
import { emptySecretSet } from "../redact/index.ts";
import type { RolloutPlace } from "./row-file.ts";

/** As graders of GDPVal look for it; it also says that the directory is complete. */
const FINISH_PARAMS = "finish_params.json";
const HAND_IN = "finish";

/**
 * Lays a result's deliverables out as graders expect them: `<out>/task_<name>/repeat_<n>/` with every file that was handed in or
 * collected, at its path in the workdir, and finish_params.json, the arguments of the last successful finish call or null. The
 * files are those of the store, linked; where that cannot be, copies. Quarantined ones are left out. A directory of an
 * earlier generation is replaced whole.
 *
 * Names are a model's: what cannot be laid out is answered as gaps and stands in the store all the same. Throws only what no name is to
 * blame for: a full disk, a store that does not answer.
 */
export async function layOut(
  out: string,
  result: ActivationResult,
  place: RolloutPlace,
  store: Pick<ArtifactStore, "directory" | "open" | "size">,
): Promise<ObservationGap[]> {
  const gaps = gapList(emptySecretSet); // the paths are redacted already
  const parent = join(out, `task_${place.task}`);
  const target = join(parent, `repeat_${place.repeat}`);
  const fresh = join(parent, `.repeat_${place.repeat}.new`); // left by a crash: made anew
  const attempted = async (path: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (isDiskFull(error) || (error instanceof RollcallError && error.code === "store_failed")) throw error;
      gaps.add("artifact_skipped", path, { why: `it was not laid out: ${shortly(error)}` });
    }
  };
  await attempted(`task_${place.task}/repeat_${place.repeat}`, async () => {
    await rm(fresh, { recursive: true, force: true });
    await mkdir(fresh, { recursive: true });
    for (const { artifact, path } of deliverablesOf(result))
      await attempted(artifact.path, () => bring(result, artifact, join(fresh, path), store));
    await writeFile(join(fresh, FINISH_PARAMS), `${JSON.stringify(finishParams(result), null, 2)}\n`);
    await rm(target, { recursive: true, force: true });
    await rename(fresh, target);
  });
  return gaps.all();
}

/** A system's own message names paths of this machine. */
function shortly(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : messageOf(error);
}

/**
 * The deliverables and where each goes: at its path in the workdir. Twins that differ only in case are in a directory of their own
 * (`~2`), and so is what would be in the way of another one or of our record, but for a file that is called like it. Pure.
 */
function deliverablesOf({ artifacts }: ActivationResult): { artifact: Artifact; path: string }[] {
  const free = freePaths([FINISH_PARAMS]);
  return artifacts
    .filter(({ kind, quarantined }) => kind !== "evidence" && !quarantined)
    .map((artifact) => ({ artifact, ...workdirPath(artifact.path) }))
    .toSorted((one, other) => one.twin - other.twin) // those with no twin before them have the first choice
    .map(({ artifact, twin, relative }) => ({ artifact, path: free(proposals(twin, relative)) }));
}

/** What the store's `outputs/` and `outputs~<n>/` hold, as the workdir did. */
function workdirPath(path: string): { twin: number; relative: string } {
  const [, twin = "1", relative = path] = /^outputs(?:~(\d+))?\/(.+)$/s.exec(path) ?? [];
  return { twin: Number(twin), relative };
}

function* proposals(twin: number, relative: string): Generator<string> {
  if (twin === 1) yield relative.toLowerCase() === FINISH_PARAMS ? "finish_params~2.json" : relative;
  for (let other = Math.max(2, twin); ; other++) yield `~${other}/${relative}`;
}

/** The arguments of the last successful call that handed in, the session's own before a subagent's; null when there was none. Pure. */
function finishParams({ response, evidence, observations }: ActivationResult): unknown {
  const tools = [HAND_IN, ...(evidence?.required_tools ?? [])];
  const subagents = observations.records.flatMap((record) =>
    record.kind === "agent_invocation" && record.parent_invocation_id !== undefined ? (record.conversation ?? []) : [],
  );
  return lastHandIn(response?.output ?? [], tools) ?? lastHandIn(subagents, tools);
}

async function bring(
  { activation_id, episode_id: { attempt } }: ActivationResult,
  { path }: Artifact,
  target: string,
  store: Pick<ArtifactStore, "directory" | "open" | "size">,
): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  if (store.directory !== null) {
    try {
      await link(join(store.directory, artifactPath(activation_id, attempt, path)), target);
      return;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return; // moved away, or not brought here (--collect)
      if (!["EXDEV", "EPERM", "EMLINK", "ENOTSUP", "EACCES"].some((code) => hasErrno(error, code))) throw error;
    }
  }
  if ((await store.size(activation_id, attempt, path)) === null) return;
  await pipeline(store.open(activation_id, attempt, path), createWriteStream(target, { mode: 0o644 }));
}
