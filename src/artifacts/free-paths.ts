// SPDX-License-Identifier: Apache-2.0

/**
 * Hands out paths that do not get into each other's way, whatever file system they are copied to: no two are the same but for case or
 * Unicode form, and none is a directory of another. Of the names proposed for a file the first that is free is taken.
 */
export function freePaths(reserved: readonly string[] = []): (proposals: Iterable<string>) => string {
  const files = new Set(reserved.map(folded));
  const directories = new Set<string>();
  return (proposals) => {
    for (const path of proposals) {
      const name = folded(path);
      const above = directoriesOf(name);
      if (files.has(name) || directories.has(name) || above.some((directory) => files.has(directory))) continue;
      files.add(name);
      for (const directory of above) directories.add(directory);
      return path;
    }
    throw new Error("the names that were proposed came to an end");
  };
}

/** Both cases: some letters have several small or large forms. */
function folded(path: string): string {
  return path.normalize("NFC").toUpperCase().toLowerCase().normalize("NFC");
}

function directoriesOf(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"));
}
