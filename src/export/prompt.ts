// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import type { EvidenceSource } from "../artifacts/open-evidence.ts";
import { readLines } from "../codex/lines.ts";

/** Longest line that is looked at; a prompt has at most 1 MiB. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
/** It stands at the beginning, after Codex's own instructions. */
const MAX_LINES = 100;

const userMessage = z.object({ type: z.literal("event_msg"), payload: z.object({ type: z.literal("user_message"), message: z.string() }) });

/** What was asked, from Codex's transcript, redacted as that is; null = it does not say, or is not there. */
export async function readPrompt(store: EvidenceSource, activationId: string, attempt: number): Promise<string | null> {
  try {
    let lines = 0;
    for await (const line of readLines(store.open(activationId, attempt, "transcript.jsonl"), MAX_LINE_BYTES)) {
      if (++lines > MAX_LINES) return null;
      if (line.kind !== "whole" || !line.text.includes('"user_message"')) continue;
      const found = userMessage.safeParse(JSON.parse(line.text));
      if (found.success) return found.data.payload.message;
    }
    return null;
  } catch {
    return null; // not there, or cut off in mid-line: the conversation then begins with the agent
  }
}
