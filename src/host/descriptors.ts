// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { RollcallError } from "../errors.ts";

/** Measured: 128 do for loading the modules of the smallest command; Redis, logs and stores come on top. */
export const NEEDED_TO_START = 256;
/** Pipes of Codex and bubblewrap, evidence that is written, connections; about 12 at its busiest. */
const FOR_A_SESSION = 20;

/** Of this process; null = as many as it likes, or it cannot be told. (Node raises its limit to the hard one when it starts.) */
export function openFiles(): number | null {
  try {
    return openFilesLimit(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    return null;
  }
}

/** Of the text of /proc/self/limits. Pure. */
export function openFilesLimit(limits: string): number | null {
  const found = /^Max open files\s+(\d+)/m.exec(limits);
  return found === null ? null : Number(found[1]);
}

/** What to say of a limit that is too low for so many sessions at once; null = it will do. Pure. */
export function tooFewDescriptors(limit: number, sessions: number): string | null {
  const needed = NEEDED_TO_START + FOR_A_SESSION * sessions;
  if (limit >= needed) return null;
  const fit = Math.floor((limit - NEEDED_TO_START) / FOR_A_SESSION);
  const fewer = fit >= 1 ? `, or use --concurrency ${fit}` : "";
  return (
    `this process may open ${limit} files at once, and ${sessions} sessions at once need ${needed}: raise that first ` +
    `(\`ulimit -n ${needed}\`; systemd: LimitNOFILE=${needed}; Docker: --ulimit nofile=${needed})${fewer}`
  );
}

/** Throws RollcallError "descriptors_too_few". */
export function requireDescriptors(sessions: number): void {
  const limit = openFiles();
  const problem = limit === null ? null : tooFewDescriptors(limit, sessions);
  if (problem !== null) throw new RollcallError("descriptors_too_few", problem);
}
