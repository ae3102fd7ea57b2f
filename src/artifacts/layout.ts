// SPDX-License-Identifier: Apache-2.0
import { activationIdSchema } from "../contract/identity.ts";
import { RollcallError } from "../errors.ts";

/**
 * Where things are in a store, whatever it is made of: paths with forward slashes, relative to its root.
 *
 *     _store.json                         this store's id; no activation id begins with an underscore
 *     _inputs/<sha256>                    files that producers put, for activations to name
 *     <activation_id>/result.json         THE end; result.g<k>.json: the ends of earlier generations
 *     <activation_id>/doc.<name>.json     documents beside it, e.g. what a resources server said of a rollout, and digests of the
 *                                         content that ended (doc.content.g<k>.json)
 *     <activation_id>/attempt-<n>/        attempt.json, evidence, outputs/, quarantine/, withheld/
 */
export const STORE_FILE = "_store.json";

const RESULT_NAME = "result.json";

export function resultPath(activationId: string): string {
  return `${activationPath(activationId)}/${RESULT_NAME}`;
}

export function earlierResultPath(activationId: string, generation: number): string {
  return `${activationPath(activationId)}/result.g${generation}.json`;
}

/** A document beside an activation's result. Throws "bad_path" for a name that is not letters, digits, dots and hyphens. */
export function documentPath(activationId: string, name: string): string {
  if (/^[a-z][a-z0-9-]*(\.[a-z0-9-]+)*$/.test(name)) return `${activationPath(activationId)}/doc.${name}.json`;
  throw new RollcallError("bad_path", `${JSON.stringify(name.slice(0, 80))} is not a name for a document`);
}

/** Throws "bad_path" for what is no sha256 in hex. */
export function inputPath(sha256: string): string {
  if (/^[0-9a-f]{64}$/.test(sha256)) return `_inputs/${sha256}`;
  throw new RollcallError("bad_path", `${JSON.stringify(sha256.slice(0, 80))} is not a sha256 in hexadecimal`);
}

function attemptPath(activationId: string, attempt: number): string {
  return `${activationPath(activationId)}/attempt-${attempt}`;
}

export function attemptFilePath(activationId: string, attempt: number): string {
  return `${attemptPath(activationId, attempt)}/attempt.json`;
}

/** An artifact's place. Throws "bad_path" for one that is not below its attempt. */
export function artifactPath(activationId: string, attempt: number, path: string): string {
  const safe = !path.includes("\0") && path.split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");
  if (safe) return `${attemptPath(activationId, attempt)}/${path}`;
  throw new RollcallError("bad_path", `${JSON.stringify(path.slice(0, 200))} is not a relative path below an attempt's directory`);
}

/** Where an artifact is once it was withheld, relative to its attempt. */
export function withheldPath(path: string): string {
  return `withheld/${path}`;
}

/** The attempts among the names in an activation's directory, oldest first. */
export function attemptNumbers(names: readonly string[]): number[] {
  return names.flatMap((name) => /^attempt-(\d+)$/.exec(name)?.slice(1).map(Number) ?? []).sort((a, b) => a - b);
}

export function isActivationId(name: string): boolean {
  return activationIdSchema.safeParse(name).success;
}

/** An activation's directory. Throws "bad_path" for what is no activation id. */
export function activationPath(activationId: string): string {
  if (isActivationId(activationId)) return activationId;
  throw new RollcallError("bad_path", `${JSON.stringify(activationId.slice(0, 80))} is not an activation id`);
}
