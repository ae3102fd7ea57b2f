// SPDX-License-Identifier: Apache-2.0
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { newApiKey, openApiKeys, type ApiKeys } from "../../src/api/api-keys.ts";
import { createApi } from "../../src/api/app.ts";
import type { ApiPorts } from "../../src/api/ports.ts";
import { serveHttp } from "../../src/api/server.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import type { QueueSettings } from "../../src/queue/settings.ts";
import { watchStreams } from "../../src/queue/stream-watch.ts";
import { startRig, TEST_KEYS, TEST_SETTINGS, type Rig } from "../queue/rig.ts";

interface ApiProcess {
  origin: string;
  queues: Queues;
  /** Ends it as SIGTERM does. */
  stop(): Promise<void>;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON; the text where it is none. */
  body: any; // oxlint-disable-line no-explicit-any -- tests say what they expect
}

/** The queue's rig, and API servers on free ports; everything ends with the test. */
export interface ApiRig extends Rig {
  api: ApiProcess;
  key: string;
  /** Another process of the API on the same Redis and store. */
  serve(more?: Partial<ApiPorts>): Promise<ApiProcess>;
  /** Asks the first server with the rig's key; a body makes it a POST. */
  call(path: string, options?: { method?: string; body?: unknown; key?: string | null; headers?: Record<string, string> }): Promise<Answer>;
}

export async function startApiRig(options: { settings?: Partial<QueueSettings>; ports?: Partial<ApiPorts> } = {}): Promise<ApiRig> {
  const rig = await startRig(options.settings);
  onTestFinished(() => rig.close());
  const key = newApiKey();
  const apiKeys = await openApiKeys({ single: key, file: null, onProblem: () => undefined });

  async function serve(more: Partial<ApiPorts> = {}): Promise<ApiProcess> {
    const stopping = new AbortController();
    const queues = openQueues(rig.redis.target, {
      role: "fail_fast",
      onError: () => undefined,
      settings: { ...TEST_SETTINGS, ...options.settings },
    });
    await queues.redis.ping().catch(() => new Promise((resolve) => queues.redis.once("ready", resolve)));
    const watch = watchStreams(queues);
    const api = createApi({ watch, ...portsOf(rig, queues, apiKeys), stopping: stopping.signal, ...options.ports, ...more });
    const server = await serveHttp(api.fetch, { host: "127.0.0.1", port: 0 });
    let stopped = false;
    const stop = async (): Promise<void> => {
      if (stopped) return;
      stopped = true;
      stopping.abort();
      await server.close({ graceMs: 5_000 });
      watch.close();
      await queues.close();
    };
    onTestFinished(stop);
    return { origin: server.origin, queues, stop };
  }
  const api = await serve();
  return {
    ...rig,
    api,
    key,
    serve,
    call: (path, { key: other = key, ...request } = {}) => callApi(api.origin, path, { key: other, ...request }),
  };
}

export async function callApi(
  origin: string,
  path: string,
  { method, body, key, headers = {} }: { method?: string; body?: unknown; key?: string | null; headers?: Record<string, string> },
): Promise<Answer> {
  const response = await fetch(origin + path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { ...(key == null ? {} : { authorization: `Bearer ${key}` }), "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = /[/+]json$/.test((response.headers.get("content-type") ?? "").split(";")[0]!);
  return { status: response.status, headers: response.headers, body: isJson && text !== "" ? JSON.parse(text) : text };
}

function portsOf(rig: Rig, queues: Queues, apiKeys: ApiKeys): Omit<ApiPorts, "stopping" | "watch"> {
  return {
    queues,
    store: rig.store,
    keys: TEST_KEYS,
    policy: { allow_providers: ["bubblewrap", "host"], allow_key_env: ["OPENAI_API_KEY"] },
    apiKeys,
    signIn: { hours: 12, secure: false },
    limits: { max_body_bytes: 4_000_000, max_file_bytes: 10_000_000, requests_per_second: 10_000, max_waiting: 50 },
    hosts: ["127.0.0.1"],
    webhook_hosts: ["127.0.0.1", "localhost"],
    web: null,
    version: "0.0.0",
    log: pino({ level: "silent" }),
  };
}

/** An activation as a producer writes it. */
export function asked(id: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { activation_id: id, run_id: "run-1", task_id: { taskset: "office", task_id: id }, input: "do it", reply_to: null, ...more };
}
