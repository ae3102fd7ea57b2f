// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import { openActivation, openSecret, sealSecret, type SealedSecret } from "../activation/seal.ts";
import type { SecretKeys } from "../activation/secret-keys.ts";
import { secretsOf } from "../activation/secrets.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import { activationSchema, type SessionActivation } from "../contract/activation.ts";
import type { McpGrant } from "../contract/grant.ts";
import type { EpisodeId } from "../contract/identity.ts";
import type { WorkerInfo } from "../contract/result.ts";
import type { Queues } from "../queue/queues.ts";
import { buildSecretSet, type SecretSet } from "../redact/index.ts";
import type { Caller } from "./call.ts";
import type { Cookies } from "./cookies.ts";
import type { KeptRollout, RolloutRecord } from "./record.ts";
import type { ResourcesLimits } from "./server.ts";
import { resourcesSessionId } from "./wire.ts";

/** What every step works with. */
export interface StepPorts {
  queues: Queues;
  store: ArtifactStore;
  keys: SecretKeys;
  caller: Caller;
  limits: ResourcesLimits;
  /** Who does the steps: stands in the records of attempts that failed before their session. */
  worker: WorkerInfo;
  log: Logger;
}

/** One step of one rollout, as it was found. */
export interface Step extends StepPorts {
  kept: KeptRollout;
  record: RolloutRecord;
  /** The job that does it; it is what is woken when there is room. */
  jobId: string;
  /** The process stops: what is being waited for is given up, and done again elsewhere. */
  signal: AbortSignal;
}

/** What becomes of a rollout after a step. */
export type Move =
  /** On with the next step. */
  | { kind: "go"; record: RolloutRecord }
  /** Looked at again after `ms`. `record`: when something of it has changed. */
  | { kind: "wait"; ms: number; record?: RolloutRecord }
  /** Nothing is to be done until the end of its activation wakes it. */
  | { kind: "rest" };

/** What only the answer to a seed tells; kept sealed. */
export interface SessionSecrets {
  cookies: Cookies;
  /** By which the session calls the server's tools; null = it has none from there. */
  grant: McpGrant | null;
}

export function sealSession(keys: SecretKeys, { activation_id, attempt }: RolloutRecord, session: SessionSecrets): SealedSecret {
  return sealSecret(JSON.stringify(session), keys, activation_id, sessionPath(attempt));
}

export function openSession(keys: SecretKeys, { activation_id, attempt, session }: RolloutRecord): SessionSecrets {
  if (session === null) return { cookies: {}, grant: null };
  return JSON.parse(openSecret(session, keys, activation_id, sessionPath(attempt))) as SessionSecrets;
}

function sessionPath(attempt: number): string {
  return `resources session ${attempt}`;
}

export function episodeOf({ rollout_id, attempt }: RolloutRecord): EpisodeId {
  return { rollout_id, attempt };
}

export function sessionIdOf(record: RolloutRecord): string {
  return resourcesSessionId(record);
}

/** The activation as it was given, its secrets in clear. */
export function draftOf({ kept, keys, record }: Pick<Step, "kept" | "keys" | "record">): SessionActivation {
  if (kept.draft === null) throw new Error(`the draft of ${record.activation_id} is gone before its end`);
  return activationSchema.parse(openActivation(kept.draft, keys));
}

/** What must not be seen again of a rollout: its own secrets, and its session's. */
export function rolloutSecrets(draft: SessionActivation, session: SessionSecrets): SecretSet {
  const granted = session.grant === null ? draft : { ...draft, tool_grants: [...draft.tool_grants, session.grant] };
  const cookies = Object.entries(session.cookies).map(([name, value]) => ({ name, value }));
  return buildSecretSet([...secretsOf(granted, ""), ...cookies]);
}
