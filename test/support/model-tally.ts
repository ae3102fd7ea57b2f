// SPDX-License-Identifier: Apache-2.0
import type { ModelRequest } from "../../examples/stand-ins/model-request.ts";
import { addUsage, NO_USAGE, RequestLog, type RecordedRequest } from "../../examples/stand-ins/request-log.ts";
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

/** Counts what a model server played, beside its log: what a run is measured against. Scripts are those in the prompts. */
export class ModelTally extends RequestLog {
  /** By capture key. */
  readonly sent = new Map<string, Sent>();
  /** Requests by what was played: "reply" or a fault's kind. */
  readonly played: Record<string, number> = {};

  override add(record: RecordedRequest, bytes: number): void {
    super.add(record, bytes);
    this.played[record.played] = (this.played[record.played] ?? 0) + 1;
  }

  override answered(request: ModelRequest, responseId: string, usage: Usage, how: "complete" | "incomplete" = "complete"): void {
    super.answered(request, responseId, usage, how);
    if (how === "incomplete") return;
    const key = request.capture_key ?? "";
    const one = this.sent.get(key) ?? { answered: 0, usage: NO_USAGE, last: NO_USAGE, commands: 0 };
    const reply = scriptIn(request.script_text)?.steps[request.step]?.reply ?? [];
    this.sent.set(key, {
      answered: one.answered + 1,
      usage: addUsage(one.usage, usage),
      last: usage,
      commands: one.commands + reply.filter((item) => "shell" in item).length,
    });
  }
}
