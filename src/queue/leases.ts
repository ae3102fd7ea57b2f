// SPDX-License-Identifier: Apache-2.0
import type { Queues } from "./queues.ts";
import { LUA_NOW, runScript, script } from "./script.ts";

const RENEW = script(`${LUA_NOW}
for i, list in ipairs(KEYS) do redis.call('ZADD', list, now + ARGV[1], ARGV[i + 1]) end
`);

/** Extends the slots of jobs that run here; also of one whose lease ran out meanwhile, because it does run. */
export async function renewLeases(queues: Queues, leases: readonly { list: string; jobId: string }[]): Promise<void> {
  if (leases.length === 0) return;
  const args = [queues.settings.lock_duration_ms, ...leases.map(({ jobId }) => jobId)];
  await runScript(
    queues.redis,
    RENEW,
    leases.map(({ list }) => list),
    args,
  );
}
