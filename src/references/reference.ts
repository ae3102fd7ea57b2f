// SPDX-License-Identifier: Apache-2.0

/** A file that a row names, to be placed in the workdir. */
export interface Reference {
  /** The row's field, e.g. "reference_files[2]". */
  at: string;
  /** Where it will be, relative to the workdir; no two of one row are equal, also on a file system without case. */
  name: string;
  /** Looked at in this order; the first one that is there counts. Paths may be relative to the task file. */
  sources: ReferenceSource[];
  /** Lower-case hex, when the row gives it. */
  sha256: string | null;
}

export type ReferenceSource = { kind: "file"; path: string } | { kind: "url"; url: URL };

/** A file on this machine, measured. */
export interface LocalCopy {
  path: string;
  sha256: string;
  bytes: number;
}

/** Why a reference cannot be used, in the words of a row's problem. */
export interface ReferenceProblem {
  code: "reference_missing" | "reference_refused" | "reference_too_large" | "reference_differs";
  message: string;
  accepted: string;
}

/** How a URL is told: without what may be a secret in it. */
export function shownUrl(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

export function isReferenceProblem(found: LocalCopy | ReferenceProblem): found is ReferenceProblem {
  return "code" in found;
}
