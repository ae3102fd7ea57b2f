// SPDX-License-Identifier: Apache-2.0
import { directoryLeftovers } from "../artifacts/directory-leftovers.ts";
import { parseS3Location } from "../artifacts/s3-location.ts";
import type { Settings } from "../config/settings.ts";
import { messageOf } from "../errors.ts";
import type { Leftover } from "../host/leftover.ts";
import { redisLeftovers } from "../redis/leftovers.ts";
import { sandboxLeftovers } from "../sandbox/leftovers.ts";
import { sandboxStateDir, sharedSandboxRoot } from "./provider.ts";

export interface Collected extends Pick<Leftover, "kind" | "what" | "why"> {
  done: "removed" | "would remove" | "stayed";
  /** Why it stayed. */
  error: string | null;
}

/**
 * Looks for leftovers on this host, and in the artifact store that is configured, and removes them, or with `dryRun` only tells. What it
 * could not remove, or look at, is among the answer.
 */
export async function collectGarbage(settings: Settings, { dryRun }: { dryRun: boolean }): Promise<Collected[]> {
  const collected: Collected[] = [];
  async function take(leftovers: AsyncIterable<Leftover>): Promise<void> {
    for await (const { kind, what, why, remove } of leftovers) {
      const error = dryRun ? null : await remove();
      collected.push({ kind, what, why, done: dryRun ? "would remove" : error === null ? "removed" : "stayed", error });
    }
  }
  await take(sandboxLeftovers(sandboxStateDir(settings), sharedSandboxRoot()));
  await take(redisLeftovers(settings.state_dir));
  const { artifacts = "", s3 } = settings;
  const location = parseS3Location(artifacts);
  if (artifacts === "") return collected;
  try {
    if (location === null) await take(directoryLeftovers(artifacts));
    else await take((await import("../artifacts/s3-leftovers.ts")).s3Leftovers(location, s3)); // the SDK takes a third of a second to load
  } catch (error) {
    const kind = location === null ? "temporary_file" : "upload";
    collected.push({ kind, what: artifacts, why: "", done: "stayed", error: messageOf(error) });
  }
  return collected;
}
