// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import type { Queues } from "../queue/queues.ts";
import { LUA_NOW, runScript, script } from "../queue/script.ts";
import { inPipeline } from "../queue/pipeline.ts";
import { gymKeys, sessionHash } from "./names.ts";
import { GymProblem } from "./problem.ts";
import type { KnownSession, SessionRecord } from "./session-state.ts";

// A session changes by one script that looks whether it is still what the decision was made from, else the decision is made
// again. So nobody holds a lock, and no process that dies or stands still can keep others waiting or write over what they did.

const CHANGE = script(`${LUA_NOW}
if (redis.call('HGET', KEYS[1], 'revision') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'record', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[3], now, ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - ARGV[5])
if ARGV[6] ~= '0' then redis.call('SET', KEYS[2], '1', 'PX', ARGV[6]) end
return 1
`);

/** Each time it had changed in between; more than this many requests for one session at once are no protocol's. */
const TRIES = 50;

interface Change {
  record: SessionRecord;
  /** From now on a close is answered again for so long. */
  receiptMs?: number;
}

export interface SessionStore {
  read(id: string): Promise<KnownSession | null>;
  /**
   * Decides from what is known, writes what the decision changes (null: nothing), and answers the decision. `decide` must be
   * pure: it is called again when somebody else was faster. Throws what it throws; GymProblem 503 when that never ends.
   */
  change<T>(id: string, decide: (known: KnownSession | null) => { answer: T; change: Change | null }): Promise<T>;
}

export function sessionStore({ redis }: Pick<Queues, "redis">, keepMs: number): SessionStore {
  async function look(id: string): Promise<{ known: KnownSession | null; revision: string }> {
    const hash = sessionHash(id);
    const [fields, receipt] = (await inPipeline(redis, (pipeline) => {
      pipeline.hmget(gymKeys.session(hash), "revision", "record");
      pipeline.exists(gymKeys.receipt(hash));
    })) as [(string | null)[], number];
    const [revision, text] = fields;
    if (revision == null || text == null) return { known: null, revision: "" };
    return { known: { record: JSON.parse(text) as SessionRecord, receipt: receipt === 1 }, revision };
  }

  return {
    read: async (id) => (await look(id)).known,
    async change(id, decide) {
      const hash = sessionHash(id);
      const names = [gymKeys.session(hash), gymKeys.receipt(hash), gymKeys.sessions];
      for (let tries = 0; tries < TRIES; tries++) {
        const { known, revision } = await look(id);
        const { answer, change } = decide(known);
        if (change === null) return answer;
        const { record, receiptMs = 0 } = change;
        const args = [revision, randomUUID(), JSON.stringify(record), hash, Math.max(keepMs, receiptMs), receiptMs];
        if ((await runScript(redis, CHANGE, names, args)) === 1) return answer;
      }
      throw new GymProblem(503, "too many requests for this agent session at once; try again");
    },
  };
}
