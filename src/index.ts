// SPDX-License-Identifier: Apache-2.0

/**
 * The library: what goes over the wire, the queue's API for producers and orchestrators, and the parts of a worker.
 * Importing it starts nothing, reads no environment and opens no socket.
 */

export { ACTIVATION_SCHEMA, ACTIVATION_SCHEMA_MINOR, activationSchema, MAX_INPUT_CHARACTERS } from "./contract/activation.ts";
export type { SessionActivation, SessionActivationInput } from "./contract/activation.ts";
export { withDerivedIds } from "./contract/derive.ts";
export { CAUSE_CODES, failureKindSchema, failureSchema, type CauseCode, type Failure } from "./contract/failure.ts";
export { overlayGrants, toolGrantSchema, type McpGrant, type ToolGrant } from "./contract/grant.ts";
export { captureKey, parseCaptureKey, safeName, type EpisodeId, type TaskId } from "./contract/identity.ts";
export { jsonSchemas } from "./contract/json-schema.ts";
export { gapCodeSchema, observationBundleSchema, type ObservationBundle, type ObservationGap } from "./contract/observation.ts";
export { admit, type Admission, type AdmissionPolicy, type Refusal, type RefusalCode } from "./contract/refusals.ts";
export {
  resultSchema,
  statusSchema,
  type ActivationResult,
  type Artifact,
  type Attempt,
  type ResultBody,
  type Status,
} from "./contract/result.ts";
export { RollcallError } from "./errors.ts";

export { parseSecretKeys, type SecretKeys } from "./activation/secret-keys.ts";
export { answerTo, type Answer, type ControlAction, type Outcome } from "./queue/answers.ts";
export { cancelActivation, cancelRun, type CancelAnswer } from "./queue/cancel.ts";
export { cleanEnded, type Cleaned } from "./queue/clean.ts";
export { wholeResult } from "./queue/deliver.ts";
export { enqueueActivations, type EnqueueAnswer } from "./queue/enqueue.ts";
export { followRun, type Ended } from "./queue/ended.ts";
export { ACTIVATION_STATES, findActivations, type ActivationState, type FoundActivation } from "./queue/find-activation.ts";
export { setRunGate, type RunGate } from "./queue/gate.ts";
export { pauseRun, readPause, resumeRun, type PauseMark } from "./queue/pause.ts";
export { followProgress, readProgress } from "./queue/progress.ts";
export { openQueues, type Queues } from "./queue/queues.ts";
export { removeRun, type RemovedRun } from "./queue/remove-run.ts";
export { retryActivations, retryRun, type RetryAnswer } from "./queue/retry.ts";
export { runStatus, type RunStatus } from "./queue/run-status.ts";
export { liveWorkers, type WorkerFacts } from "./queue/worker-lease.ts";
export { workerLoads, type WorkerLoad } from "./queue/worker-loads.ts";
export type { RedisTarget } from "./redis/connect.ts";

export { runActivation, type RunPorts } from "./activation/run.ts";
export { openDirectoryStore } from "./artifacts/directory-store.ts";
export { openArtifactStore, type S3Settings } from "./artifacts/open-store.ts";
export type { ArtifactStore } from "./artifacts/types.ts";
export { checkCodexVersion, findCodex, type CodexBinary } from "./codex/binary.ts";
export { NO_SKILLS, readSkills, type SkillSet } from "./codex/skills.ts";
export { createLogger } from "./logging.ts";
export { startActivationWorker, type ActivationWorker } from "./queue/activation-worker.ts";
export { startSentinel, type Sentinel } from "./queue/sentinel.ts";
export { LiveSecrets } from "./redact/index.ts";
export { findBubblewrap } from "./sandbox/bubblewrap-binary.ts";
export { createBubblewrapProvider } from "./sandbox/bubblewrap.ts";
export { createHostProvider } from "./sandbox/host.ts";
export type { Sandbox, SandboxProvider } from "./sandbox/types.ts";
