// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import type { EvidenceTarget } from "../artifacts/evidence.ts";
import type { CodexBinary } from "../codex/binary.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { captureKey, type EpisodeId } from "../contract/identity.ts";
import { DEFAULT_MODEL_URL, keyMayGoTo, keyOriginText } from "../contract/key-origins.ts";
import type { ActivationResult, WorkerInfo } from "../contract/result.ts";
import { buildSecretSet, type SecretSet } from "../redact/index.ts";
import type { Claim, ProgressEntry } from "./ports.ts";
import type { RunPorts } from "./run.ts";
import { secretsOf } from "./secrets.ts";
import { stageFailure } from "./stage-failure.ts";

/** One physical run of an activation, from its number to its end. Everything in here that is text of others is not yet redacted. */
export interface AttemptContext {
  activation: SessionActivation;
  attempt: number;
  /** Charged attempts before this one. */
  charged: number;
  episode: EpisodeId;
  capture_key: string;
  /** Safe as a file name; names the sandbox. */
  sandbox_id: string;
  started_at: Date;
  queued_ms: number;
  /** Of a clock that never goes back; for durations. */
  clock: () => number;
  /** null: this worker has none of the version that the activation names. */
  codex: CodexBinary | null;
  modelKey: string;
  secrets: SecretSet;
  evidence: EvidenceTarget;
  progress: (entry: Omit<ProgressEntry, "attempt">) => void;
  /** The model answered for the first time. */
  answered: () => void;
  /** W3C, for the servers that it talks to; undefined: nobody traces. */
  traceparent: string | undefined;
}

/**
 * Takes the attempt's number and settles everything that follows from it. The caller ends `forgetSecrets`. `ended`: somebody
 * committed an end after the claim had looked for one, while this worker or Redis stood still; nothing may run any more.
 */
export async function beginAttempt(
  claim: Claim,
  ports: RunPorts,
): Promise<{ ended: ActivationResult } | { ended: null; context: AttemptContext; forgetSecrets: () => void }> {
  const { activation, generation, ledger } = claim;
  const codex = codexNamed(activation, ports);
  const by: WorkerInfo = {
    ...ports.worker,
    codex_version: codex?.version ?? null,
    sandbox_provider: activation.sandbox.provider ?? ports.defaultProvider,
  };
  const { attempt, charged } = await ledger.takeAttempt(by);
  const standing = await ports.store.readCommit(activation.activation_id);
  if (standing !== null && standing.generation >= generation) return { ended: standing };
  ports.telemetry.begun();
  const started_at = new Date();
  const episode = { rollout_id: activation.episode_id.rollout_id, attempt };
  const modelKey = modelKeyOf(activation, ports);
  const secrets = buildSecretSet(secretsOf(activation, modelKey));
  return {
    ended: null,
    context: {
      activation,
      attempt,
      charged,
      episode,
      capture_key: captureKey(episode),
      sandbox_id: randomBytes(16).toString("hex"),
      started_at,
      queued_ms: Math.max(0, started_at.getTime() - Date.parse(claim.enqueued_at)),
      clock: () => performance.now(),
      codex,
      modelKey,
      secrets,
      evidence: { store: ports.store, activation_id: activation.activation_id, attempt, secrets },
      progress: (entry) => ledger.progress({ ...entry, attempt }),
      answered: () => ledger.answered(),
      traceparent: ports.telemetry.traceparent(),
    },
    forgetSecrets: ports.liveSecrets.add(secrets),
  };
}

function codexNamed({ codex: { version } }: SessionActivation, { codexes }: RunPorts): CodexBinary | null {
  return version === undefined ? codexes[0] : (codexes.find((one) => one.version === version) ?? null);
}

/** The model key of this activation: its own, or the worker's variable it names; "" when there is none for its model server. */
function modelKeyOf({ model }: SessionActivation, ports: RunPorts): string {
  if (model.api_key !== undefined) return model.api_key;
  const variable = keyVariable(model, ports);
  return keyMayGoTo(ports.keyOrigins, variable, model.base_url ?? DEFAULT_MODEL_URL) ? (ports.modelKeys[variable] ?? "") : "";
}

function keyVariable(model: SessionActivation["model"], { defaultKeyEnv }: RunPorts): string {
  return model.api_key_env ?? defaultKeyEnv;
}

/**
 * Codex says that its key is missing only after turn.started, where neither the end of stderr nor a startup gap belongs: so
 * the worker refuses before launch.
 */
export function requireModelKey({ activation, modelKey }: AttemptContext, ports: RunPorts): void {
  if (modelKey !== "") return;
  const variable = keyVariable(activation.model, ports);
  const url = activation.model.base_url ?? DEFAULT_MODEL_URL;
  if (!keyMayGoTo(ports.keyOrigins, variable, url)) {
    const { message, accepted } = keyOriginText(variable, url);
    throw stageFailure("key_origin_not_allowed", `${message}; accepted: ${accepted}`);
  }
  throw stageFailure(
    "model_key_missing",
    `the worker has no model key: set ${variable} in its environment, or model.api_key in the activation`,
  );
}
