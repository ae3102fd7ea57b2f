// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import type { ModelRequest } from "../../examples/stand-ins/model-request.ts";
import { RequestLog } from "../../examples/stand-ins/request-log.ts";
import { say, scriptIn, step, withFault, type Script, type Step } from "../../examples/stand-ins/script.ts";

/** How the model server behaves for a while. */
export type Weather = "429" | "500" | "cut" | "hang";

/** Who called the model, for the oracle. */
export interface ModelCalls {
  capture_key: string;
  thread_id: string;
  first_at: number;
  last_at: number;
}

export interface ChaosModel {
  readonly captureBaseUrl: string;
  readonly calls: readonly ModelCalls[];
  /** Every call that comes within this time is answered so; resolves when it is over, with how many there were. */
  storm(weather: Weather, seconds: number): Promise<number>;
  close(): Promise<void>;
}

/** The stand-in model, which for a while can be as bad as a real one. The caller closes it. */
export async function startChaosModel(apiKey: string): Promise<ChaosModel> {
  const calls = new Map<string, ModelCalls>();
  let storm: { weather: Weather; until: number; struck: number } | null = null;

  function note({ capture_key, thread_id }: ModelRequest): void {
    const at = Date.now();
    const key = `${capture_key}\0${thread_id}`;
    const known = calls.get(key);
    if (known !== undefined) known.last_at = at;
    else calls.set(key, { capture_key: capture_key ?? "", thread_id: thread_id ?? "", first_at: at, last_at: at });
  }

  function scriptFor(request: ModelRequest): Script | undefined {
    note(request);
    if (storm === null) return undefined;
    storm.struck++;
    const current = scriptIn(request.script_text)?.steps[request.step] ?? step(say("Done."));
    const steps = Array.from({ length: request.step }, () => step());
    return { steps: [...steps, inStorm(current, storm.weather, storm.until - Date.now())] };
  }

  const server = await startModelServer({ apiKey, scriptFor, log: new RequestLog({ maxRequests: 1 }) });
  return {
    captureBaseUrl: server.captureBaseUrl,
    get calls() {
      return [...calls.values()];
    },
    async storm(weather, seconds) {
      const mine = { weather, until: Date.now() + seconds * 1_000, struck: 0 };
      storm = mine;
      await delay(seconds * 1_000);
      storm = null;
      return mine.struck;
    },
    close: () => server.close(),
  };
}

function inStorm(current: Step, weather: Weather, leftMs: number): Step {
  switch (weather) {
    case "429":
      return withFault(current, {
        kind: "status",
        status: 429,
        body: '{"error":{"message":"Rate limit reached. Please try again in 2s."}}',
      });
    case "500":
      return withFault(current, { kind: "status", status: 500, body: '{"error":{"message":"overloaded"}}' });
    case "cut":
      return withFault(current, { kind: "cut", after: [] });
    case "hang": // an answer that comes when it is over: a connection that hangs for ever would outlast it
      return { ...current, delay_ms: (current.delay_ms ?? 0) + Math.max(0, leftMs) };
    default:
      return weather satisfies never;
  }
}
