// SPDX-License-Identifier: Apache-2.0
import pRetry from "p-retry";
import { withSha256 } from "../artifacts/measured.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import { ApiError } from "../client/api-error.ts";
import type { Client } from "../client/client.ts";
import type { ActivationResult, Artifact } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";

/** Which files of a result are brought here: deliverables and evidence, deliverables, or none. */
export const COLLECT = ["all", "outputs", "none"] as const;
export type Collect = (typeof COLLECT)[number];

/** So often a file is fetched anew whose bytes came only in part. */
const CUT_OFF = 5;

/**
 * Brings a result and its files from a server into a store of this machine, in the same layout. What is there is not fetched
 * again. Files in which a secret was found stay where they are unless the key may have them.
 */
export async function collectFiles(
  { client, store, collect, say }: { client: Client; store: ArtifactStore; collect: Collect; say: (line: string) => void },
  result: ActivationResult,
): Promise<void> {
  const { activation_id, generation } = result;
  const standing = await store.readCommit(activation_id);
  if (standing !== null && standing.generation >= generation) return; // the result comes after its files
  if (standing !== null) await store.setAside(activation_id, standing.generation);
  for (const artifact of result.artifacts) {
    if (collect === "all" || (collect === "outputs" && artifact.kind !== "evidence"))
      await fetchFile({ client, store, say }, result, artifact);
  }
  await store.commit(result);
}

async function fetchFile(
  { client, store, say }: { client: Client; store: ArtifactStore; say: (line: string) => void },
  { activation_id, episode_id: { attempt } }: ActivationResult,
  { path, kind, source, quarantined, sha256 }: Artifact,
): Promise<void> {
  if ((await store.size(activation_id, attempt, path)) !== null) return;
  try {
    const fetched = async (): Promise<void> => {
      const body = await client.artifact(activation_id, attempt, path);
      await store.put(activation_id, attempt, path, withSha256(body, sha256), { kind, source, quarantined });
    };
    await pRetry(fetched, { retries: CUT_OFF, shouldRetry: ({ error }) => !(error instanceof RollcallError) });
  } catch (error) {
    if (error instanceof RollcallError && error.code === "artifact_exists") return; // another start was faster
    if (!(error instanceof ApiError) || (error.status !== 403 && error.status !== 404)) throw error;
    say(`${activation_id}: ${path} was not brought here: ${error.message}`);
  }
}
