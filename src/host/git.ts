// SPDX-License-Identifier: Apache-2.0
import { execFile } from "node:child_process";
import { basename, dirname } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Where a file stands in its git repository. */
export interface GitState {
  /** HEAD. */
  commit: string;
  /** It differs from what HEAD has of it, or HEAD has nothing. */
  modified: boolean;
}

/**
 * Of a file's repository; null without one, or without git. Only what reads objects: nothing that a repository's configuration could
 * have run (hooks, filters, fsmonitor).
 */
export async function gitState(path: string): Promise<GitState | null> {
  const git = async (...args: string[]): Promise<string> => {
    const { stdout } = await run("git", ["-C", dirname(path), ...args], { timeout: 10_000, env: { ...GIT_ENV }, maxBuffer: 65_536 });
    return stdout.trim();
  };
  try {
    const commit = await git("rev-parse", "--verify", "HEAD");
    const committed = await git("rev-parse", "--verify", "--quiet", `HEAD:./${basename(path)}`).catch(() => null);
    return { commit, modified: committed !== (await git("hash-object", "--no-filters", "--", basename(path))) };
  } catch {
    return null;
  }
}

const GIT_ENV = { PATH: "/usr/local/bin:/usr/bin:/bin", GIT_OPTIONAL_LOCKS: "0", GIT_CONFIG_NOSYSTEM: "1", LC_ALL: "C" };
