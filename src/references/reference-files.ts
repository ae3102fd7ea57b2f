// SPDX-License-Identifier: Apache-2.0
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { measuredFile } from "../artifacts/measured.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { whyNotFetched, type AllowedHosts } from "./may-fetch.ts";
import { shownUrl, type LocalCopy, type Reference, type ReferenceProblem, type ReferenceSource } from "./reference.ts";
import type { UrlCache } from "./url-cache.ts";

export interface ReferencePolicy {
  /** The task file's directory: paths are relative to it, and only what lies in it may be named. */
  baseDir: string;
  /** Directories beside it that rows may name. */
  allowDirs: readonly string[];
  allowUrlHosts: AllowedHosts;
  maxBytes: number;
  firstPauseMs?: number;
  /** Ends what is being fetched; whoever waits for it gets the signal's reason. */
  signal?: AbortSignal;
}

export interface ReferenceFiles {
  /** Whether it can be there at all, without reading or fetching it. */
  look(reference: Reference): Promise<ReferenceProblem | null>;
  /** Its file on this machine, fetched where needed; the same answer each time it is asked. */
  get(reference: Reference): Promise<LocalCopy | ReferenceProblem>;
}

const PUBLIC_HTTPS = "an https URL of a public host, or a host of references.allow_url_hosts";

/** The files that rows name, as far as the policy lets them. `cache` is opened when a URL is first needed. */
export function referenceFiles(policy: ReferencePolicy, cache: () => Promise<UrlCache>): ReferenceFiles {
  let opened: Promise<UrlCache> | null = null;
  const answers = new Map<string, Promise<LocalCopy | ReferenceProblem>>();

  /** The first of its sources that is there; a URL is taken to be. */
  async function choose(reference: Reference): Promise<ReferenceSource | ReferenceProblem> {
    let missing: ReferenceProblem | null = null;
    for (const source of reference.sources) {
      if (source.kind === "url") {
        const refused = whyNotFetched(source.url, policy.allowUrlHosts);
        return refused === null ? source : problem("reference_refused", `${shownUrl(source.url)}: ${refused}`, PUBLIC_HTTPS);
      }
      const found = await localFile(source.path, policy);
      if (!("code" in found)) return { kind: "file", path: found.path };
      if (found.code !== "reference_missing") return found;
      missing ??= found;
    }
    return missing ?? problem("reference_missing", "it names no file", "a path or a URL");
  }

  async function find(reference: Reference): Promise<LocalCopy | ReferenceProblem> {
    const source = await choose(reference);
    if ("code" in source) return source;
    try {
      const copy = source.kind === "file" ? await measuredCopy(source.path) : await fetched(source.url, reference.sha256);
      if (reference.sha256 === null || reference.sha256 === copy.sha256) return copy;
      return problem(
        "reference_differs",
        `its file has sha256 ${copy.sha256}, the row says ${reference.sha256}`,
        "the file that the row means",
      );
    } catch (error) {
      policy.signal?.throwIfAborted();
      if (error instanceof RollcallError) return asProblem(error);
      return problem("reference_missing", `it cannot be read: ${messageOf(error)}`, "a file that can be read");
    }
  }

  async function fetched(url: URL, sha256: string | null): Promise<LocalCopy> {
    const { allowUrlHosts: allowed, maxBytes, firstPauseMs, signal } = policy;
    opened ??= cache();
    return (await opened).fetch(url, sha256, { allowed, maxBytes, signal, ...(firstPauseMs === undefined ? {} : { firstPauseMs }) });
  }

  return {
    async look(reference) {
      const source = await choose(reference);
      return "code" in source ? source : null;
    },
    get(reference) {
      const key = JSON.stringify([reference.sources, reference.sha256]);
      const answer = answers.get(key) ?? find(reference);
      answers.set(key, answer);
      return answer;
    },
  };
}

async function measuredCopy(path: string): Promise<LocalCopy> {
  const measured = await measuredFile(createReadStream(path));
  if (measured === null) throw new RollcallError("reference_missing", `there is no file ${path}`);
  return { path, ...measured };
}

/** A path that a row names, all links followed. Rows come from elsewhere and must not reach any file of this machine. */
async function localFile(named: string, { baseDir, allowDirs, maxBytes }: ReferencePolicy): Promise<{ path: string } | ReferenceProblem> {
  const wanted = resolve(baseDir, named);
  try {
    const path = await realpath(wanted);
    const roots = await Promise.all([baseDir, ...allowDirs].map((root) => realpath(root).catch(() => null)));
    if (!roots.some((root) => root !== null && path.startsWith(root.endsWith(sep) ? root : root + sep))) {
      return problem(
        "reference_refused",
        `${wanted} is not below the task file's directory`,
        "a file there, or in a directory of references.allow_dirs",
      );
    }
    const facts = await stat(path);
    if (!facts.isFile()) return problem("reference_missing", `${wanted} is not a regular file`, "a regular file");
    if (facts.size > maxBytes) return asProblem(new RollcallError("reference_too_large", `${wanted} has over ${maxBytes} bytes`));
    return { path };
  } catch (error) {
    const reason = hasErrno(error, "ENOENT") ? `there is no file ${wanted}` : `cannot read ${wanted}: ${messageOf(error)}`;
    return problem("reference_missing", reason, "a file that exists, relative to the task file's directory");
  }
}

const ACCEPTED: Record<ReferenceProblem["code"], string> = {
  reference_missing: "a file that can be fetched",
  reference_refused: PUBLIC_HTTPS,
  reference_too_large: "a smaller one, or a higher references.max_file_mb",
  reference_differs: "the file that the row means",
};

/** Errors of the network and of the row; others (a full disk) are the producer's own and go on. */
function asProblem(error: RollcallError): ReferenceProblem {
  if (Object.hasOwn(ACCEPTED, error.code)) {
    const code = error.code as ReferenceProblem["code"];
    return problem(code, error.message, ACCEPTED[code]);
  }
  throw error;
}

function problem(code: ReferenceProblem["code"], message: string, accepted: string): ReferenceProblem {
  return { code, message, accepted };
}
