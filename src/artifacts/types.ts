// SPDX-License-Identifier: Apache-2.0
import type { Readable } from "node:stream";
import type { ActivationResult, Artifact, Attempt } from "../contract/result.ts";

/**
 * Where evidence, deliverables and the end of each activation are kept. A worker setting (`dir:` or `s3:`), never a wire field;
 * all workers of one Redis share one store. Everything given to it is already redacted, or byte-identical on purpose.
 */
export interface ArtifactStore {
  /** Names this store; workers of one Redis compare it at start. */
  readonly id: string;
  /** Where it is on this host; null = elsewhere. */
  readonly directory: string | null;
  /** Streams one artifact of an attempt. `path` is relative, forward slashes; throws "artifact_exists" when it is there, "path_too_long". */
  put(activationId: string, attempt: number, path: string, body: Readable, facts: ArtifactFacts): Promise<Artifact>;
  /** The bytes of one artifact, or some of them; errors (it is not there) come from the stream. */
  open(activationId: string, attempt: number, path: string, range?: ByteRange): Readable;
  /** How many bytes it has; null: nothing of that name is there. */
  size(activationId: string, attempt: number, path: string): Promise<number | null>;
  /** Streams a file that activations may name by its sha256; nothing is done when it is there. Throws "sha256_differs" and keeps nothing. */
  putInput(sha256: string, body: Readable): Promise<void>;
  /** Its bytes; errors (it is not there) come from the stream. */
  openInput(sha256: string): Readable;
  hasInput(sha256: string): Promise<boolean>;
  /** What is there of one artifact, measured anew, e.g. after its worker was killed; null when nothing is. */
  find(activationId: string, attempt: number, path: string, facts: ArtifactFacts): Promise<Artifact | null>;
  /** Moves one artifact out of the way of whoever publishes the attempt's directory; says where it is now. */
  withhold(activationId: string, attempt: number, path: string): Promise<Pick<Artifact, "path" | "uri">>;
  /** Writes attempt.json, durably; once per attempt. */
  putAttempt(activationId: string, attempt: Attempt): Promise<void>;
  /** All saved attempts, oldest first. */
  readAttempts(activationId: string): Promise<Attempt[]>;
  /** Numbers of all attempts that left anything, in order: also of those that were killed before they could say how they ended. */
  attemptNumbers(activationId: string): Promise<number[]>;
  /** THE end: creates result.json only if there is none; else answers the one that stands. */
  commit(result: ActivationResult): Promise<{ committed: boolean; result: ActivationResult }>;
  /** The committed result of the current generation; null when there is none. */
  readCommit(activationId: string): Promise<ActivationResult | null>;
  /** The committed result of one generation as it lies in the store, byte for byte; null when there is none. */
  readCommitted(activationId: string, generation: number): Promise<CommittedBytes | null>;
  /** Before a new generation: keeps result.json as result.g<k>.json. Idempotent. */
  setAside(activationId: string, generation: number): Promise<void>;
  /** Keeps a JSON text beside an activation's result, durably, and only if nothing of that name is there: false then. Throws "bad_path". */
  putDocument(activationId: string, name: string, text: string): Promise<boolean>;
  /** null when there is none. */
  readDocument(activationId: string, name: string): Promise<CommittedBytes | null>;
  /** Ids of all activations that have a committed result. */
  listEnded(): AsyncIterable<string>;
}

/** Both ends included. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface CommittedBytes {
  text: string;
  /** `s3://` or `file://`, percent-encoded. */
  uri: string;
}

export interface ArtifactFacts {
  kind: Artifact["kind"];
  /** Where it was inside the sandbox; null for evidence. */
  source: string | null;
  quarantined: boolean;
}
