// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { SecretKeys } from "../activation/secret-keys.ts";
import { serveHttp, type HttpServer } from "../api/server.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import { hostAndPort } from "../config/address.ts";
import { admissionPolicy } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { createAgentServer } from "../gym/app.ts";
import type { Queues } from "../queue/queues.ts";
import { aborted } from "../rollout/waiting.ts";

/** Serves the agent-session protocol where `agent_server.address` says; null = nowhere. The caller closes it. Throws RollcallError. */
export async function startAgentServer(
  settings: Settings,
  parts: { queues: Queues; store: ArtifactStore; keys: SecretKeys; log: Logger; stopping: AbortSignal },
): Promise<HttpServer | null> {
  const { address, ...rest } = settings.agent_server;
  if (address === undefined) return null;
  const { max_waiting } = settings.api;
  const app = createAgentServer({
    ...parts,
    policy: admissionPolicy(settings),
    defaults: settings,
    toolGrants: settings.tool_grants,
    settings: { ...rest, max_waiting },
  });
  // Whoever sees it listen may ask; before that, a connection that fails fast would say that Redis is away.
  const { redis } = parts.queues;
  const ready = new Promise<void>((resolve) => (redis.status === "ready" ? resolve() : redis.once("ready", () => resolve())));
  await Promise.race([ready, aborted(parts.stopping)]);
  const server = await serveHttp(app.fetch, hostAndPort(address));
  parts.log.warn({ origin: server.origin }, "the agent server asks for no key: whoever reaches this address can run sessions");
  return server;
}
