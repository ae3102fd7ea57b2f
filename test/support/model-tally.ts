// SPDX-License-Identifier: Apache-2.0
import { RequestLog, type RecordedRequest } from "../../examples/stand-ins/request-log.ts";
import { scriptIn, type Usage } from "../../examples/stand-ins/script.ts";

/** What the stand-in model sent in the session of one capture key. */
export interface Sent {
  /** Whole replies. */
  answered: number;
  usage: Usage;
  /** Of the last reply. */
  last: Usage;
  /** Commands in them. */
  commands: number;
}

/** Counts what a model server played, beside its log: what a run is measured against. Scripts are those in the prompts, with usage in each step. */
export class ModelTally extends RequestLog {
  /** By capture key. */
  readonly sent = new Map<string, Sent>();
  /** Requests by what was played: "reply" or a fault's kind. */
  readonly played: Record<string, number> = {};

  override add(record: RecordedRequest, bytes: number): void {
    super.add(record, bytes);
    this.played[record.played] = (this.played[record.played] ?? 0) + 1;
    const { request } = record;
    if (request === null || record.played !== "reply") return;
    const key = request.capture_key ?? "";
    const one = this.sent.get(key) ?? { answered: 0, usage: { ...NONE }, last: { ...NONE }, commands: 0 };
    this.sent.set(key, one);
    const played = scriptIn(request.script_text)?.steps[request.step];
    one.answered++;
    one.commands += played?.reply.filter((item) => "shell" in item).length ?? 0;
    for (const field of FIELDS) one.usage[field] += one.last[field] = played?.usage?.[field] ?? Number.NaN;
  }
}

const NONE: Usage = { input_tokens: 0, cached_input_tokens: 0, output_tokens: 0, reasoning_output_tokens: 0 };
const FIELDS = Object.keys(NONE) as (keyof Usage)[];
