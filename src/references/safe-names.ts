// SPDX-License-Identifier: Apache-2.0

/** A component may have 255 bytes; what is left is for the mark of a twin and for those who write beside it. */
const MAX_BYTES = 200;
/** Control, format (also those that turn the direction of writing), private and unassigned characters; separators; what Windows forbids. */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}/\\:*?"<>|]/gu;

/**
 * Names under which files of other people are placed: readable, never a path, never hidden or an option, and none like
 * another one of the list even where case or Unicode form do not count. The first of equal names keeps it. Pure.
 */
export function safeFileNames(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const base = safeBase(name);
    for (let twin = 1; ; twin++) {
      const candidate = twin === 1 ? base : marked(base, `~${twin}`);
      const folded = candidate.normalize("NFKC").toLowerCase();
      if (taken.has(folded)) continue;
      taken.add(folded);
      return candidate;
    }
  });
}

function safeBase(name: string): string {
  const last = name.split("/").at(-1) ?? "";
  const cleaned = last
    .normalize("NFC")
    .replace(UNSAFE, "_")
    .trim()
    .replace(/^[.-]+/, "_")
    .replace(/[. ]+$/, "");
  return marked(cleaned === "" ? "file" : cleaned, "");
}

/** With the mark before the extension, cut to what a file system takes. */
function marked(name: string, mark: string): string {
  const [, stem, extension] = /^(.*?)((?:\.[A-Za-z0-9]{1,10}){0,2})$/su.exec(name) as RegExpExecArray;
  let kept = stem === undefined || stem === "" ? name : stem;
  const end = stem === undefined || stem === "" ? mark : `${mark}${extension ?? ""}`;
  while (Buffer.byteLength(kept + end) > MAX_BYTES) kept = Array.from(kept).slice(0, -1).join("");
  return kept + end;
}
