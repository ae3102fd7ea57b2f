// SPDX-License-Identifier: Apache-2.0
import { setMaxListeners } from "node:events";
import type { McpGrant } from "../contract/grant.ts";
import type { CodexCommand } from "../codex/command.ts";
import type { Sandbox } from "../sandbox/types.ts";
import type { CheckBound } from "../host/bound.ts";
import { checkHttp } from "./check-http.ts";
import { checkStdio } from "./check-stdio.ts";
import type { ServerCheck } from "./finding.ts";
import { goesThroughSocks } from "./proxy.ts";

export interface CheckContext {
  sandbox: Sandbox;
  /** How Codex will be started: its servers' programs see of its environment what they will see then. */
  command: CodexCommand;
  /** For each server by itself. */
  bound: CheckBound;
}

/**
 * Asks every server for its tools, by grant name. HTTP servers all at once; programs one after the other beside them,
 * since a sandbox runs one command at a time. Rejects with the signal's reason, or when the sandbox fails; nothing goes on after that.
 */
export async function checkServers(grants: readonly McpGrant[], context: CheckContext): Promise<Map<string, ServerCheck>> {
  const checks = new Map<string, ServerCheck>();
  const { seconds, signal } = context.bound;
  const failed = new AbortController();
  setMaxListeners(0, failed.signal); // one per grant
  const follow = (): void => failed.abort(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", follow, { once: true });
  const bound = { seconds, signal: failed.signal };
  const programs = async (): Promise<void> => {
    for (const { name, connection } of grants) {
      if (connection.transport !== "stdio") continue;
      bound.signal.throwIfAborted();
      checks.set(name, await checkStdio(connection, context.sandbox, context.command, bound));
    }
  };
  const servers = grants.map(async ({ name, connection }) => {
    if (connection.transport !== "streamable_http") return;
    if (goesThroughSocks(connection.url, context.command.env)) return;
    checks.set(name, await checkHttp(connection, context.command.env, bound));
  });
  const all = [programs(), ...servers];
  try {
    await Promise.all(all);
    return checks;
  } catch (error) {
    failed.abort(error);
    await Promise.allSettled(all);
    throw error;
  } finally {
    signal.removeEventListener("abort", follow);
  }
}
