// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import type { AttemptLedger, Used } from "../activation/ports.ts";
import type { UnsavedAttempt } from "../activation/lost-attempt.ts";
import { closeAttempt, takeAttempt, type AttemptEnd } from "./attempts.ts";
import { tellCommitted } from "./committed.ts";
import { tellBreaker, type Teller } from "./breaker.ts";
import { readCancelMark } from "./cancel.ts";
import { keys } from "./names.ts";
import { progressPublisher } from "./progress.ts";
import type { Queues } from "./queues.ts";

export interface ClaimLedger extends AttemptLedger {
  /** Notes how the attempt of this claim left, if one was taken. Answers all charged so far. */
  close(end: AttemptEnd): Promise<number>;
}

/** The ledger of one claim, whose lock holds `token`. `floor`: the least number its attempt may have. */
export function claimLedger(
  queues: Queues,
  names: Teller & { generation: number },
  { token, floor }: { token: string; floor: number },
): ClaimLedger {
  const { activationId, jobId, runId, generation } = names;
  const claimId = randomUUID(); // BullMQ's token may come again with the next claim
  let taken: number | null = null;
  let earlier: UnsavedAttempt[] = [];
  let used: Used = { model_calls: 0, tokens: 0 };
  return {
    async takeAttempt(by) {
      const { unsaved, ...answer } = await takeAttempt(queues.redis, { activationId, jobId, token, claimId }, floor, by ?? null);
      taken = answer.attempt;
      earlier = unsaved;
      await queues.redis.sadd(keys.touched(runId), jobId);
      return answer;
    },
    unsavedBefore: () => earlier,
    isOvertaken: async () => taken !== null && Number(await queues.redis.hget(keys.ledger(activationId), "next")) > taken + 1,
    committed() {
      if (taken !== null) tellCommitted(queues.redis, { activationId, jobId, generation, attempt: taken }).catch(queues.onError);
    },
    cancelMark: () => readCancelMark(queues, jobId),
    tell: (sign) => tellBreaker(queues, names, sign),
    answered: () => void tellBreaker(queues, names, { kind: "answered" }).catch(() => undefined), // the end tells it too
    progress: progressPublisher(queues, activationId),
    used(all) {
      used = all;
    },
    close: (end) => (taken === null ? Promise.resolve(0) : closeAttempt(queues.redis, { activationId, runId, attempt: taken }, end, used)),
  };
}
