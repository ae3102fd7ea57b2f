// SPDX-License-Identifier: Apache-2.0
import { resolve } from "node:path";
import { openDirectoryStore } from "./directory-store.ts";
import { parseS3Location } from "./s3-location.ts";
import type { ArtifactStore } from "./types.ts";

/** How the S3 server is reached; what is absent is looked up as every AWS SDK does. Credentials only ever are. */
export interface S3Settings {
  endpoint?: string | undefined;
  region?: string | undefined;
  force_path_style?: boolean | undefined;
}

/**
 * Opens the store at a place: `s3://bucket/prefix`, or a directory, also written `dir:PATH`. Throws "store_unwritable" when
 * nothing can be written there, "store_damaged" when something else is there, and for S3 "store_not_conditional".
 */
export async function openArtifactStore(place: string, s3: S3Settings = {}): Promise<ArtifactStore> {
  const location = parseS3Location(place);
  if (location === null) return openDirectoryStore(resolve(place.replace(/^dir:/u, "")));
  const { openS3Store } = await import("./s3-store.ts"); // the SDK takes a third of a second to load
  return openS3Store(location, s3);
}
