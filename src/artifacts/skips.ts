// SPDX-License-Identifier: Apache-2.0
import type { GapCode, ObservationGap } from "../contract/observation.ts";
import { redactValue, type SecretSet } from "../redact/index.ts";

/** Notes that a path was left out, and why. */
export type Skip = (path: string, why: string) => void;

/** Gaps go into the result: a model that makes 100,000 links must not make it huge. */
const MAX_GAPS = 100;
const MAX_PATH_CHARACTERS = 500;

/** Gaps about files, redacted and bounded: after 100 of a code, one more says how many were not listed. */
export function gapList(secrets: SecretSet): {
  /** `facts` are ours; `path` may be anything a model wrote. */
  add(code: GapCode, path: string, facts: { why: string }): void;
  all(): ObservationGap[];
} {
  const listed: ObservationGap[] = [];
  const counts = new Map<GapCode, number>();
  return {
    add(code, path, facts) {
      const count = (counts.get(code) ?? 0) + 1;
      counts.set(code, count);
      if (count > MAX_GAPS) return;
      const shown = redactValue(secrets, path);
      const short = shown.length > MAX_PATH_CHARACTERS ? `${shown.slice(0, MAX_PATH_CHARACTERS)}...` : shown;
      listed.push({ code, detail: JSON.stringify({ path: short, ...facts }) });
    },
    all() {
      const unlisted = [...counts].filter(([, count]) => count > MAX_GAPS);
      return [
        ...listed,
        ...unlisted.map(([code, count]) => ({
          code,
          detail: JSON.stringify({ path: "", why: `${count - MAX_GAPS} more are not listed` }),
        })),
      ];
    },
  };
}
