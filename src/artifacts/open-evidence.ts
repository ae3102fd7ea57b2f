// SPDX-License-Identifier: Apache-2.0
import { createReadStream } from "node:fs";
import { join, resolve } from "node:path";
import { artifactPath } from "./layout.ts";
import { openArtifactStore, type S3Settings } from "./open-store.ts";
import { parseS3Location } from "./s3-location.ts";
import type { ArtifactStore } from "./types.ts";

/** What is needed of a store to read evidence. */
export type EvidenceSource = Pick<ArtifactStore, "open">;

/**
 * A store to read from: a directory (also `dir:PATH`) is not touched, so that a copy on a read-only disk will do. S3 as
 * {@link openArtifactStore}, with what that throws.
 */
export async function openEvidence(place: string, s3: S3Settings = {}): Promise<EvidenceSource> {
  if (parseS3Location(place) !== null) return openArtifactStore(place, s3);
  const root = resolve(place.replace(/^dir:/u, ""));
  return {
    open: (activationId, attempt, path, range) => createReadStream(join(root, artifactPath(activationId, attempt, path)), { ...range }),
  };
}
