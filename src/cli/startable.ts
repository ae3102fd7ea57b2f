// SPDX-License-Identifier: Apache-2.0
import { NEEDED_TO_START, openFiles, tooFewDescriptors } from "../host/descriptors.ts";

const DEFAULT_CONCURRENCY = 4;

/** Why the command cannot even be loaded here; null = it can. */
export function notStartable(nodeVersion: string, argv: readonly string[]): string | null {
  const limit = openFiles();
  const tooOld = nodeTooOld(nodeVersion);
  if (tooOld !== null || limit === null || limit >= NEEDED_TO_START) return tooOld;
  const sessions = Number(/^--concurrency[ =](\d+)$/m.exec(argv.join(" ").replaceAll(" --", "\n--"))?.[1] ?? DEFAULT_CONCURRENCY);
  return tooFewDescriptors(limit, sessions);
}

/** What to say of a Node that is too old; null = it will do. Pure. */
export function nodeTooOld(version: string): string | null {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return null;
  return `Node ${version} is too old: Rollcall needs 20.19 or newer (https://nodejs.org, or your system's package manager)`;
}
