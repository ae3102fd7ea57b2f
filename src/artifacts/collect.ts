// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { Readable } from "node:stream";
import type { SessionActivation } from "../contract/activation.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { Artifact } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { findSecrets, redactValue, type SecretSet } from "../redact/index.ts";
import { findFiles, handedInPath } from "./find-files.ts";
import { freePaths } from "./free-paths.ts";
import { openInside, realRoot } from "./open-inside.ts";
import { gapList, type Skip } from "./skips.ts";
import type { ArtifactStore } from "./types.ts";

export interface CollectOptions {
  store: ArtifactStore;
  activation_id: string;
  attempt: number;
  /** The sandbox's workdir, as it and as the worker sees it. */
  workdir: { inside: string; outside: string };
  outputs: SessionActivation["outputs"];
  /** Paths as the model handed them in: absolute inside paths, or relative to the workdir. */
  handedIn: readonly string[];
  secrets: SecretSet;
  /** Bounds the time; what is not collected when it aborts is left out and recorded. */
  signal: AbortSignal;
  /** More files than this, of both sources together, are left out. */
  maxFiles?: number;
}

const MAX_FILES = 2_000;
const MIB = 1_048_576;
const TOO_LATE = "the time for collecting is over";

/**
 * Copies the deliverables of an ended Codex into the store, byte-identical: files handed in first, then what the globs of
 * `outputs` match. Each keeps its path in the workdir below `outputs/`, so that equal basenames stay apart. A file that
 * holds a secret goes to `quarantine/` instead. Whatever is left out becomes a gap. Throws only what the store throws.
 */
export async function collect(options: CollectOptions): Promise<{ artifacts: Artifact[]; gaps: ObservationGap[] }> {
  const { outputs, workdir, secrets, signal } = options;
  const gaps = gapList(secrets);
  const skip: Skip = (path, why) => gaps.add("artifact_skipped", path, { why });
  const root = await realRoot(workdir.outside);
  if (root === null) {
    skip(workdir.inside, "the workdir is not there");
    return { artifacts: [], gaps: gaps.all() };
  }
  const artifacts: Artifact[] = [];
  const placeFor = artifactPaths(secrets);
  let left = outputs.max_total_mb * MIB;
  for (const [relative, kind] of await findCandidates(options, skip)) {
    const opened = signal.aborted ? { why: TOO_LATE } : await openInside(root, relative);
    if ("why" in opened) {
      skip(relative, opened.why);
      continue;
    }
    try {
      const limit = Math.floor(Math.min(outputs.max_file_mb * MIB, left));
      const seen = opened.bytes > limit ? null : await inspect(opened.file, limit, options);
      if (seen === null) {
        skip(relative, limit < Math.floor(left) ? `over ${outputs.max_file_mb} MB` : `over ${outputs.max_total_mb} MB in total`);
        continue;
      }
      const source = redactValue(secrets, `${workdir.inside}/${relative}`);
      const path = placeFor(relative, seen.secrets > 0);
      const quarantined = path.startsWith(QUARANTINE);
      const body = Readable.from(upTo(opened.file, seen.bytes, signal), { objectMode: false });
      const copied = await options.store.put(options.activation_id, options.attempt, path, body, { kind, source, quarantined });
      // Then what was copied is not what was searched.
      const changed = copied.sha256 !== seen.sha256;
      if (quarantined || changed) {
        gaps.add("artifact_quarantined", path, { why: changed ? "it changed while it was collected" : "it holds a secret" });
      }
      artifacts.push({ ...copied, quarantined: quarantined || changed });
      left -= copied.bytes;
    } catch (error) {
      skip(relative, whyNotCopied(error, signal));
    } finally {
      await opened.file.close();
    }
  }
  return { artifacts, gaps: gaps.all() };
}

/** Paths relative to the workdir, each once; being handed in counts more than matching a glob. */
async function findCandidates(options: CollectOptions, skip: Skip): Promise<Map<string, Artifact["kind"]>> {
  const { workdir, outputs, handedIn, signal, maxFiles = MAX_FILES } = options;
  const candidates = new Map<string, Artifact["kind"]>();
  for (const path of handedIn) {
    const relative = handedInPath(path, workdir.inside);
    if (relative === null) skip(path, `not a path below ${workdir.inside}`);
    else if (candidates.size === maxFiles && !candidates.has(relative)) skip(path, `more than ${maxFiles} files`);
    else candidates.set(relative, "submission");
  }
  for (const relative of await findFiles({ workdir, patterns: outputs.paths, maxFiles, signal, skip })) {
    if (candidates.has(relative)) continue;
    if (candidates.size === maxFiles) skip(relative, `more than ${maxFiles} files`);
    else candidates.set(relative, "output");
  }
  return candidates;
}

/** Reads a file once before it is copied, because a secret in it decides where it goes; null when it is over `limit`. */
async function inspect(
  file: FileHandle,
  limit: number,
  { secrets, signal }: CollectOptions,
): Promise<{ bytes: number; sha256: string; secrets: number } | null> {
  const hash = createHash("sha256");
  let bytes = 0;
  async function* measured(): AsyncGenerator<Buffer> {
    for await (const chunk of upTo(file, limit + 1, signal)) {
      bytes += chunk.length;
      hash.update(chunk);
      yield chunk;
    }
  }
  const found = await findSecrets(secrets).scan(Readable.from(measured(), { objectMode: false }));
  return bytes > limit ? null : { bytes, sha256: hash.digest("hex"), secrets: found };
}

/** The first `bytes` of a file. Explicit positions: it is read twice. */
async function* upTo(file: FileHandle, bytes: number, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let position = 0; position < bytes;) {
    signal.throwIfAborted();
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(Math.min(65_536, bytes - position)), 0, null, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

const QUARANTINE = "quarantine";

/**
 * Where each file goes. Two paths that differ only in case or in their Unicode form are one file on some file systems, where
 * the directory may be copied to: the second one gets a top directory of its own. A name that holds a secret is not used.
 */
function artifactPaths(secrets: SecretSet): (relative: string, holdsSecret: boolean) => string {
  const free = freePaths();
  return (relative, holdsSecret) => {
    const namesSecret = redactValue(secrets, relative) !== relative;
    return free(namedIn(holdsSecret || namesSecret ? QUARANTINE : "outputs", namesSecret ? "unnamed" : relative));
  };
}

function* namedIn(top: string, name: string): Generator<string> {
  yield `${top}/${name}`;
  for (let twin = 2; ; twin++) yield `${top}~${twin}/${name}`;
}

/** Why one file was not copied although it could be opened; rethrows what is the store's trouble and not the file's. */
function whyNotCopied(error: unknown, signal: AbortSignal): string {
  if (signal.aborted && error === signal.reason) return TOO_LATE;
  if (error instanceof RollcallError && error.code === "artifact_exists") return "another file has its place in the store";
  if (error instanceof RollcallError && error.code === "path_too_long") return "its path is too long for the store";
  throw error;
}
