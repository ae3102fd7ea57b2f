// SPDX-License-Identifier: Apache-2.0
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

interface Collected {
  /** Inside path. */
  source: string | null;
  /** Where its bytes are. */
  file: string;
}

/**
 * The files that the session of a capture key left, in the artifact directory of its run; null when it has no result there. This
 * is the read-only view of a workdir that is gone by the time it is scored.
 */
export async function collectedFiles(artifacts: string, captureKey: string): Promise<Collected[] | null> {
  for (const activation of await readdir(artifacts)) {
    const names = await readdir(join(artifacts, activation)).catch(() => []);
    for (const name of names.filter((one) => /^result(\.g\d+)?\.json$/.test(one))) {
      const result = JSON.parse(await readFile(join(artifacts, activation, name), "utf8")) as {
        capture_key: string;
        episode_id: { attempt: number };
        artifacts: { source: string | null; path: string; kind: string; quarantined: boolean }[];
      };
      if (result.capture_key !== captureKey) continue;
      const attempt = join(artifacts, activation, `attempt-${result.episode_id.attempt}`);
      const files = result.artifacts.filter(({ kind, quarantined }) => kind !== "evidence" && !quarantined);
      return files.map(({ source, path }) => ({ source, file: join(attempt, path) }));
    }
  }
  return null;
}

/** Where a rollout's deliverables are: `task_<id>/repeat_<n>`, as GDPVal lays them out. */
export function deliverablesDir(root: string, taskId: string, rolloutId: string): string {
  const repeat = /-r(\d+)$/.exec(rolloutId)?.[1] ?? "0";
  return join(root, `task_${basename(taskId)}`, `repeat_${repeat}`);
}

/** Copies files by their basenames, the later of two equal ones wins, and writes finish_params.json: null for one that never finished. */
export async function persist(directory: string, files: readonly string[], finish: Record<string, unknown> | null): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const file of files) await copyFile(file, join(directory, basename(file)));
  await writeFile(join(directory, "finish_params.json"), `${JSON.stringify(finish)}\n`);
}
