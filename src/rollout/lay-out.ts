// SPDX-License-Identifier: Apache-2.0
import { createWriteStream } from "node:fs";
import { link, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { artifactPath } from "../artifacts/layout.ts";
import { lastHandIn } from "../artifacts/submission.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ActivationResult, Artifact } from "../contract/result.ts";
import { hasErrno } from "../errors.ts";
import type { RolloutPlace } from "./row-file.ts";

/** As graders of GDPVal look for it; it also says that the directory is complete. */
const FINISH_PARAMS = "finish_params.json";
const HAND_IN = "finish";

/**
 * Lays a result's deliverables out as graders expect them: `<out>/task_<name>/repeat_<n>/` with every file that was handed in or
 * collected, at its path in the workdir, and finish_params.json, the arguments of the last successful finish call or null. The
 * files are those of the store, linked; where that cannot be, copies. Quarantined ones are left out. A directory of an
 * earlier generation is replaced whole.
 */
export async function layOut(
  out: string,
  result: ActivationResult,
  place: RolloutPlace,
  store: Pick<ArtifactStore, "directory" | "open" | "size">,
): Promise<void> {
  const parent = join(out, `task_${place.task}`);
  const target = join(parent, `repeat_${place.repeat}`);
  const fresh = join(parent, `.repeat_${place.repeat}.new`); // left by a crash: made anew
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { recursive: true });
  for (const artifact of result.artifacts) {
    if (artifact.kind === "evidence" || artifact.quarantined) continue;
    const path = join(fresh, deliverablePath(artifact.path));
    await mkdir(dirname(path), { recursive: true });
    await bring(result, artifact, path, store);
  }
  await writeFile(join(fresh, FINISH_PARAMS), `${JSON.stringify(finishParams(result), null, 2)}\n`);
  await rm(target, { recursive: true, force: true });
  await rename(fresh, target);
}

/** The arguments of the last successful call that handed in, the session's own before a subagent's; null when there was none. Pure. */
function finishParams({ response, evidence, observations }: ActivationResult): unknown {
  const tools = [HAND_IN, ...(evidence?.required_tools ?? [])];
  const subagents = observations.records.flatMap((record) =>
    record.kind === "agent_invocation" && record.parent_invocation_id !== undefined ? (record.conversation ?? []) : [],
  );
  return lastHandIn(response?.output ?? [], tools) ?? lastHandIn(subagents, tools);
}

/**
 * Where a file of the store's `outputs/` goes. Twins that differ only in case stay in a directory of their own (`~2`), and a
 * deliverable that is called like our record gets another name. Pure.
 */
function deliverablePath(path: string): string {
  const relative = path.replace(/^outputs(~\d+)?\//, (_, twin: string | undefined) => (twin === undefined ? "" : `${twin}/`));
  return relative.toLowerCase() === FINISH_PARAMS ? "finish_params~2.json" : relative;
}

async function bring(
  { activation_id, episode_id: { attempt } }: ActivationResult,
  { path }: Artifact,
  target: string,
  store: Pick<ArtifactStore, "directory" | "open" | "size">,
): Promise<void> {
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
