// SPDX-License-Identifier: Apache-2.0

export const LEFTOVER_KINDS = [
  "sandbox",
  "sandbox_directory",
  "uid_lock",
  "runtime_build",
  "temporary_file",
  "embedded_redis",
  "redis_state",
  "upload",
] as const;

/** Something that a killed process left on this host, or in the artifact store. */
export interface Leftover {
  kind: (typeof LEFTOVER_KINDS)[number];
  /** A path, or what a person would call it. */
  what: string;
  /** Why nobody needs it. */
  why: string;
  /** Takes it away; the reason when that failed. Looks again whether it is still nobody's. */
  remove: () => Promise<string | null>;
}
