// SPDX-License-Identifier: Apache-2.0
import { MOST_TIMER_MS } from "../contract/duration.ts";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { z } from "zod";
import type { PreflightPhase } from "./finding.ts";

const MAX_PAGES = 100;
/** The SDK's own bound is not used: its error looks like one that a server may send. */
const NEVER_MS = MOST_TIMER_MS;

/** As Codex reads it: a tool without an input schema spoils the list. Nothing else of a tool is looked at, or kept. */
const toolListSchema = z.object({
  tools: z.array(z.object({ name: z.string(), inputSchema: z.looseObject({}) })),
  nextCursor: z.string().optional(),
});

/**
 * initialize and the whole of tools/list; the names of the tools, in the server's order. Rejects with whatever went
 * wrong, or with the signal's reason. The transport is closed in the end.
 */
export async function listTools(transport: Transport, signal: AbortSignal, onPhase: (phase: PreflightPhase) => void): Promise<string[]> {
  const client = new Client({ name: "rollcall-preflight", version: "1.0.0" });
  const options = { signal, timeout: NEVER_MS };
  const aborted = new Promise<never>((_, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  aborted.catch(() => undefined);
  const conversation = async (): Promise<string[]> => {
    onPhase("initialize");
    await client.connect(transport, options);
    onPhase("tools/list");
    const names: string[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const listed = await client.request({ method: "tools/list", params }, toolListSchema, options);
      names.push(...listed.tools.map(({ name }) => name));
      cursor = listed.nextCursor;
      if (cursor === undefined) return names;
    }
    throw new Error(`its list of tools has more than ${MAX_PAGES} pages`);
  };
  const conversed = conversation();
  conversed.catch(() => undefined); // may fail after the bound
  try {
    // Not every step of the SDK listens to the signal: sending a notification does not.
    return await Promise.race([conversed, aborted]);
  } finally {
    await client.close();
  }
}
