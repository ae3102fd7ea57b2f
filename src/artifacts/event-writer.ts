// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { ObservationGap } from "../contract/observation.ts";
import type { Artifact } from "../contract/result.ts";
import { redactValue } from "../redact/index.ts";
import { EVIDENCE, type EvidenceTarget } from "./evidence.ts";

const MAX_BYTES = 67_108_864;

export interface EventWriter {
  /**
   * Appends `[time, event]`, redacted. `time` is in Unix seconds. Await it before the next one: that is what bounds memory.
   * Rejects with the store's error.
   */
  write(time: number, event: unknown): Promise<void>;
  /** Ends the file. Call it once, always; rejects with the store's error. The gap says what did not fit. */
  end(): Promise<{ artifact: Artifact; gaps: ObservationGap[] }>;
}

/**
 * Writes Codex's events to events.jsonl while they come, so that a killed worker leaves what was seen. Redacted on decoded
 * strings, where no escape can hide a secret. Events beyond `maxBytes` are counted and dropped.
 */
export function openEventWriter(target: EvidenceTarget, maxBytes: number = MAX_BYTES): EventWriter {
  const body = new PassThrough();
  const stored = target.store.put(target.activation_id, target.attempt, "events.jsonl", body, EVIDENCE);
  stored.catch(() => {}); // told to whoever writes or ends
  let bytes = 0;
  let kept = 0;
  let dropped = 0;
  return {
    async write(time, event) {
      const line = dropped > 0 ? null : Buffer.from(`${JSON.stringify([time, redactValue(target.secrets, event)])}\n`);
      if (line === null || bytes + line.length > maxBytes) {
        dropped++;
        return;
      }
      bytes += line.length;
      kept++;
      if (!body.write(line)) await Promise.race([once(body, "drain"), stored]).catch(() => stored);
    },
    async end() {
      body.end();
      const artifact = await stored;
      return { artifact, gaps: dropped === 0 ? [] : [{ code: "stdout_truncated", detail: JSON.stringify({ kept, dropped }) }] };
    },
  };
}
