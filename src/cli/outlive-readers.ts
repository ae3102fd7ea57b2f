// SPDX-License-Identifier: Apache-2.0
import { EXIT } from "../rollout/exit-code.ts";

/** Commands that only tell, for as long as there is something to tell. */
const TELLERS: ReadonlySet<string> = new Set(["watch", "results"]);

/**
 * A reader of our output that went away (`| head`) has what it wanted: a command that only tells ends quietly, any other does its work to
 * the end, with its exit code. Without this Node would throw EPIPE in the middle of it.
 */
export function outliveReaders(command: string): void {
  process.stderr.on("error", () => undefined);
  process.stdout.on("error", () => {
    if (TELLERS.has(command)) process.exit(EXIT.ok);
  });
}
