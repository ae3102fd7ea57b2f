// SPDX-License-Identifier: Apache-2.0
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { ActivationResult } from "../contract/result.ts";
import { layOut } from "./lay-out.ts";
import type { ResultsFiles } from "./results-files.ts";
import type { RowFile } from "./row-file.ts";

/**
 * The files of a run whose results are completed before their lines are written: deliverables are laid out first, so that whatever is
 * recorded also lies there (or the line has a gap that says what does not), and a foreign row goes into the line as `row`. One result at a time of each activation.
 */
export function completing(
  files: ResultsFiles,
  parts: { out: string; rows: RowFile; store: Pick<ArtifactStore, "directory" | "open" | "size"> },
): ResultsFiles {
  const { out, rows, store } = parts;
  async function take(result: ActivationResult): Promise<boolean> {
    const news = files.newsOf(result);
    if (news === null) return false;
    const place = news === "generation" ? rows.placeOf(result.activation_id) : null; // a verification changes no file
    const gaps = place === null ? [] : await layOut(out, result, place, store);
    const row = await rows.rowOf(result.activation_id);
    const told = gaps.length === 0 ? result : withGaps(result, gaps);
    return files.take(told, row === null ? {} : { row });
  }
  return { ...files, take };
}

function withGaps(result: ActivationResult, gaps: readonly ObservationGap[]): ActivationResult {
  return { ...result, observations: { ...result.observations, gaps: [...result.observations.gaps, ...gaps] } };
}
