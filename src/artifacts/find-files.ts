// SPDX-License-Identifier: Apache-2.0
import { opendir } from "node:fs/promises";
import { join, posix } from "node:path";
import { messageOf } from "../errors.ts";
import { compileGlobs, type Glob, type GlobState } from "./glob.ts";
import type { Skip } from "./skips.ts";

export interface FindOptions {
  /** The workdir as the sandbox and as the worker see it. */
  workdir: { inside: string; outside: string };
  patterns: readonly string[];
  /** More matches than this end the search. */
  maxFiles: number;
  signal: AbortSignal;
  skip: Skip;
}

interface Directory {
  relative: string;
  reached: readonly { glob: Glob; state: GlobState }[];
}

/**
 * Regular files of the workdir that the patterns match, relative to it, sorted. Never enters a link; says so of a link that
 * a pattern matches. Reads directories in small batches, so that 100,000 files hold nothing else up. Never throws: what cannot be
 * read is given to `skip`, and when `signal` aborts the files found so far are the answer.
 */
export async function findFiles({ workdir, patterns, maxFiles, signal, skip }: FindOptions): Promise<string[]> {
  const globs = patterns.flatMap((pattern) => {
    const compiled = compileGlobs(belowWorkdir(pattern, workdir.inside));
    if (compiled === null) skip(pattern, "the pattern does not stay in the workdir, or is too complicated");
    return compiled ?? [];
  });
  const found: string[] = [];
  const pending: Directory[] = globs.length === 0 ? [] : [{ relative: "", reached: globs.map((glob) => ({ glob, state: glob.start })) }];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    try {
      for await (const entry of await opendir(join(workdir.outside, directory.relative), { bufferSize: 256 })) {
        if (signal.aborted) {
          skip(posix.join(directory.relative, "*"), "the time for collecting is over");
          return found.sort();
        }
        const reached = directory.reached.flatMap(({ glob, state }) => {
          const next = glob.step(state, entry.name);
          return next === null ? [] : [{ glob, state: next }];
        });
        if (reached.length === 0) continue;
        const relative = posix.join(directory.relative, entry.name);
        if (entry.isDirectory()) pending.push({ relative, reached });
        else if (reached.some(({ glob, state }) => glob.matches(state))) {
          if (entry.isSymbolicLink()) skip(relative, "a symbolic link");
          else if (!entry.isFile()) skip(relative, "not a regular file");
          else if (found.push(relative) === maxFiles) {
            skip(posix.join(directory.relative, "*"), `more than ${maxFiles} files match`);
            return found.sort();
          }
        }
      }
    } catch (error) {
      skip(directory.relative, `the directory cannot be read: ${messageOf(error)}`);
    }
  }
  return found.sort();
}

/** Patterns may be written with the workdir as the model sees it. */
function belowWorkdir(pattern: string, inside: string): string {
  return pattern.startsWith(`${inside}/`) ? pattern.slice(inside.length + 1) : pattern;
}

/**
 * A path that the model handed in, relative to the workdir: absolute ones are inside paths, relative ones count from the
 * workdir. null when it leads out of it. Pure: links are looked at when the file is opened.
 */
export function handedInPath(path: string, inside: string): string | null {
  const relative = posix.relative(inside, posix.resolve(inside, path));
  return path === "" || path.includes("\0") || relative === "" || relative === ".." || relative.startsWith("../") ? null : relative;
}
