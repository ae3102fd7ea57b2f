// SPDX-License-Identifier: Apache-2.0

/** Every operation of the API under its name in the client; a test compares them with the OpenAPI document. */
export const OPERATIONS = {
  enqueue: ["POST", "/v1/activations"],
  activation: ["GET", "/v1/activations/{id}"],
  cancelActivation: ["DELETE", "/v1/activations/{id}"],
  retryActivation: ["POST", "/v1/activations/{id}/retry"],
  result: ["GET", "/v1/activations/{id}/result"],
  events: ["GET", "/v1/activations/{id}/events"],
  activations: ["POST", "/v1/activations/state"],
  cancelActivations: ["POST", "/v1/activations/cancel"],
  story: ["GET", "/v1/activations/{id}/story"],
  runs: ["GET", "/v1/runs"],
  run: ["GET", "/v1/runs/{run_id}"],
  rows: ["GET", "/v1/runs/{run_id}/rows"],
  results: ["GET", "/v1/runs/{run_id}/results"],
  pauseRun: ["POST", "/v1/runs/{run_id}/pause"],
  resumeRun: ["POST", "/v1/runs/{run_id}/resume"],
  retryRun: ["POST", "/v1/runs/{run_id}/retry"],
  cancelRun: ["DELETE", "/v1/runs/{run_id}"],
  recordRefused: ["POST", "/v1/runs/{run_id}/refused"],
  breaker: ["GET", "/v1/runs/{run_id}/breaker"],
  setBreaker: ["PUT", "/v1/runs/{run_id}/breaker"],
  setBudget: ["PUT", "/v1/runs/{run_id}/budget"],
  workers: ["GET", "/v1/workers"],
  artifact: ["GET", "/v1/artifacts/{activation_id}/{attempt}/{path}"],
  putFile: ["PUT", "/v1/files/{sha256}"],
  claimResults: ["POST", "/v1/results/claim"],
  ackResults: ["POST", "/v1/results/ack"],
  resultQueues: ["GET", "/v1/results/queues"],
  seal: ["POST", "/v1/seal"],
  putWebhook: ["PUT", "/v1/webhooks/{name}"],
  webhooks: ["GET", "/v1/webhooks"],
  removeWebhook: ["DELETE", "/v1/webhooks/{name}"],
  deadLetters: ["GET", "/v1/webhooks/{name}/dead"],
  replayDead: ["POST", "/v1/webhooks/{name}/replay"],
} as const satisfies Record<string, readonly [method: string, path: string]>;
export type Operation = keyof typeof OPERATIONS;

/** Sent twice they do more than sent once: not sent again when it is unknown whether they arrived. */
export const NOT_REPEATABLE: ReadonlySet<Operation> = new Set(["claimResults", "retryRun", "retryActivation"]);
