// SPDX-License-Identifier: Apache-2.0
import type { Settings } from "../config/settings.ts";
import type { Leftover } from "../host/leftover.ts";
import { redisLeftovers } from "../redis/leftovers.ts";
import { sandboxLeftovers } from "../sandbox/leftovers.ts";
import { sandboxStateDir, sharedSandboxRoot } from "./provider.ts";

export interface Collected extends Pick<Leftover, "kind" | "what" | "why"> {
  done: "removed" | "would remove" | "stayed";
  /** Why it stayed. */
  error: string | null;
}

/** Looks for leftovers on this host and removes them, or with `dryRun` only tells. What it could not remove is among the answer. */
export async function collectGarbage(settings: Settings, { dryRun }: { dryRun: boolean }): Promise<Collected[]> {
  const collected: Collected[] = [];
  for (const leftovers of [sandboxLeftovers(sandboxStateDir(settings), sharedSandboxRoot()), redisLeftovers(settings.state_dir)]) {
    for await (const { kind, what, why, remove } of leftovers) {
      const error = dryRun ? null : await remove();
      collected.push({ kind, what, why, done: dryRun ? "would remove" : error === null ? "removed" : "stayed", error });
    }
  }
  return collected;
}
