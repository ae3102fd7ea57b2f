// SPDX-License-Identifier: Apache-2.0
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
 * Looks for leftovers on this host, and in the S3 store where there is one, and removes them, or with `dryRun` only tells. What it
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
  if (location === null) return collected;
  const { s3Leftovers } = await import("../artifacts/s3-leftovers.ts"); // the SDK takes a third of a second to load
  await take(s3Leftovers(location, s3)).catch((error: unknown) => {
    collected.push({ kind: "upload", what: artifacts, why: "", done: "stayed", error: messageOf(error) });
  });
  return collected;
}
