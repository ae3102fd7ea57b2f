// SPDX-License-Identifier: Apache-2.0
import type { FailureKind } from "../contract/failure.ts";

/** Why a call to a resources server brought no answer that can be used. */
export type CallFault =
  /** Nobody was there: the request was not sent. */
  | { kind: "unreachable"; code: string }
  /** The connection broke, before or within the answer: the request may have been acted upon. */
  | { kind: "peer_drop"; code: string }
  | { kind: "timeout"; seconds: number }
  /** `said`: the beginning of its body, redacted. */
  | { kind: "status"; status: number; retryAfterMs: number | null; said: string }
  /** It answered, but not what the protocol says. */
  | { kind: "protocol"; what: string };

export class CallFailure extends Error {
  readonly fault: CallFault;

  constructor(fault: CallFault) {
    super(describeFault(fault));
    this.name = "CallFailure";
    this.fault = fault;
  }
}

/** Whether the same may work later: 408, 425, 429, 500 and up, broken connections and time-outs. Other statuses and wrong answers stay. Pure. */
export function isRetryable(fault: CallFault): boolean {
  switch (fault.kind) {
    case "unreachable":
    case "peer_drop":
    case "timeout":
      return true;
    case "status":
      return fault.status >= 500 || fault.status === 408 || fault.status === 425 || fault.status === 429;
    case "protocol":
      return false;
    default:
      return fault satisfies never;
  }
}

export function faultKind(fault: CallFault, onStatus: FailureKind): FailureKind {
  switch (fault.kind) {
    case "unreachable":
      return "transport_unreachable";
    case "peer_drop":
      return "transport_peer_drop";
    case "timeout":
      return "transport_timeout";
    case "status":
      return onStatus;
    case "protocol":
      return "protocol_violation";
    default:
      return fault satisfies never;
  }
}

/** For people; free of secrets as `said` is. Pure. */
export function describeFault(fault: CallFault): string {
  switch (fault.kind) {
    case "unreachable":
      return `it cannot be reached (${fault.code})`;
    case "peer_drop":
      return `the connection broke (${fault.code})`;
    case "timeout":
      return `no answer within ${fault.seconds} s`;
    case "status":
      return `HTTP ${fault.status}${fault.said === "" ? "" : `: ${fault.said}`}`;
    case "protocol":
      return fault.what;
    default:
      return fault satisfies never;
  }
}

/** A Retry-After header in ms, at most an hour; null when there is none to be understood. Pure. */
export function retryAfterMs(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  const at = /^\s*\d+(\.\d+)?\s*$/.test(header) ? now + Number(header) * 1_000 : Date.parse(header);
  return Number.isNaN(at) ? null : Math.min(Math.max(0, at - now), 3_600_000);
}
