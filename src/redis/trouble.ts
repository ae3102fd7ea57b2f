// SPDX-License-Identifier: Apache-2.0

/** What is wrong with a Redis: it does not answer, or answers that it does not do what it was told. */
export interface RedisTrouble {
  kind: "away" | "full" | "read_only" | "cannot_save" | "refuses";
  /** One sentence with what to do; holds nothing of the command that failed. */
  text: string;
}

const REFUSALS: readonly (readonly [pattern: RegExp, kind: RedisTrouble["kind"], text: string])[] = [
  [
    /\bOOM command not allowed/,
    "full",
    "Redis is full (OOM: it uses all of its maxmemory) and takes nothing new: raise maxmemory (`redis-cli CONFIG SET maxmemory 2gb`, and in redis.conf), or remove ended runs with `rollcall clean`",
  ],
  [
    /\bREADONLY\b/,
    "read_only",
    "Redis is a read-only replica (READONLY): set REDIS_URL to its primary, or promote it (`redis-cli REPLICAOF NO ONE`)",
  ],
  [
    /\bMISCONF\b/,
    "cannot_save",
    "Redis cannot write to its disk (MISCONF) and takes nothing new: its log says why; make room, or repair the directory that `redis-cli CONFIG GET dir` names",
  ],
  [/\b(?:NOAUTH|WRONGPASS)\b/, "refuses", "Redis does not take the password of REDIS_URL: correct the password, or the user's ACL"],
  [/\bNOPERM\b/, "refuses", "Redis forbids this user a command (NOPERM): give the user of REDIS_URL all commands on {rollcall}*"],
  [
    /\bNOREPLICAS\b/,
    "refuses",
    "Redis has too few replicas (NOREPLICAS) and takes nothing new: bring them back, or lower min-replicas-to-write",
  ],
  [/\bEXECABORT\b/, "refuses", "Redis refused a transaction (EXECABORT): its log, or `rollcall doctor`, says why"],
];
/** As ioredis says it when a command cannot be sent, or lost its connection on the way (ioredis 6.0.0). */
const AWAY_NAMES: ReadonlySet<string> = new Set(["MaxRetriesPerRequestError", "AggregateError", "ClusterAllFailedError"]);
const AWAY =
  /Connection is closed|Stream isn't writeable|ECONNREFUSED|ECONNRESET|ENOENT.*\.sock|LOADING Redis|MASTERDOWN|CLUSTERDOWN|Socket timeout|Command timed out/;

/** What an error says of Redis; null when it is none of Redis' or its connection's. Pure. */
export function redisTrouble(thrown: unknown): RedisTrouble | null {
  if (!(thrown instanceof Error)) return null;
  // Of a transaction, whose own words say only that one of its commands was refused.
  const { previousErrors } = thrown as { previousErrors?: unknown };
  for (const previous of Array.isArray(previousErrors) ? (previousErrors as unknown[]) : []) {
    const trouble = redisTrouble(previous);
    if (trouble !== null) return trouble;
  }
  if (thrown.name === "ReplyError") {
    const found = REFUSALS.find(([pattern]) => pattern.test(thrown.message));
    if (found !== undefined) return { kind: found[1], text: found[2] };
  }
  if (!AWAY_NAMES.has(thrown.name) && !AWAY.test(thrown.message)) return null;
  return { kind: "away", text: "Redis does not answer: see whether it runs, and whether this machine reaches it (`rollcall doctor`)" };
}
