// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { AdmissionPolicy } from "../contract/refusals.ts";
import type { Queues } from "../queue/queues.ts";
import type { StreamWatch } from "../queue/stream-watch.ts";
import type { Exposition } from "../telemetry/exposition.ts";
import type { AnsweredRequest } from "../telemetry/http-metrics.ts";
import type { ServerDefaults } from "./server-defaults.ts";
import type { ApiKeys } from "./api-keys.ts";

/** What the API works with. It keeps no state of its own: any number of them may serve one Redis. */
export interface ApiPorts {
  /** Opened with the role "fail_fast": a caller waits. */
  queues: Queues;
  /** Of the same Redis. */
  watch: StreamWatch;
  store: ArtifactStore;
  /** For sealing what producers send, and for the cookies of browsers. */
  keys: SecretKeys;
  policy: AdmissionPolicy;
  /** What stands for what callers leave out. Absent: the contract's own defaults. */
  defaults?: ServerDefaults;
  apiKeys: ApiKeys;
  signIn: SignInSettings;
  limits: ApiLimits;
  /** Hosts that webhooks may name although they are not public, or not https. */
  webhook_hosts: readonly string[];
  /** Names under which it may be called; "*" = any. */
  hosts: readonly string[];
  /** Directory of the built pages; null = it serves none. */
  web: string | null;
  version: string;
  /** Absent: nothing is measured, and there is no /metrics. */
  metrics?: { exposition: Exposition; answered: (request: AnsweredRequest) => void };
  log: Logger;
  /** Aborted when the server stops: whoever waits is answered. */
  stopping: AbortSignal;
}

interface SignInSettings {
  /** A browser stays signed in so long. */
  hours: number;
  /** Its cookie goes over https only; false: only when it was given over https. */
  secure: boolean;
}

interface ApiLimits {
  /** Of one request, in bytes. */
  max_body_bytes: number;
  /** Of a file that is put. */
  max_file_bytes: number;
  /** Of one key in one process. */
  requests_per_second: number;
  /** Requests that wait for something, at once in one process. */
  max_waiting: number;
}
