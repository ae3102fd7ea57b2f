// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Fault } from "./schedule.ts";

interface Guard {
  /** Below dist/. */
  file: string;
  line: string;
  replacement: string;
  /** The faults that need it most; what is injected when nothing else is asked for. */
  faults: readonly Fault[];
}

/** Lines of the product that keep a promise each; without one of them the oracle must report a breach. */
export const GUARDS = {
  /** A job whose activation has ended does not run again. */
  commit: {
    file: "src/queue/claim.js",
    line: "if (committed !== null && committed.generation >= generation)",
    replacement: "if (false)",
    faults: ["redis_freeze", "redis_kill"],
  },
  /** The first end stands. */
  fence: {
    file: "src/artifacts/documents.js",
    line: "if (await documents.create(resultPath(activationId), text)) {",
    replacement:
      "await documents.remove(resultPath(activationId), await documents.read(resultPath(activationId)));\n" +
      "        if (await documents.create(resultPath(activationId), text)) {",
    faults: ["worker_freeze", "redis_freeze"],
  },
  /** Sandboxes of killed workers are removed. */
  reaper: {
    file: "src/sandbox/reap.js",
    line: "if (!isAlive(record.owner.process))",
    replacement: "if (false)",
    faults: ["worker_kill"],
  },
  /** Secrets are taken out of what is kept. */
  redaction: {
    file: "src/redact/secret-set.js",
    line: 'return new SecretSet(inputs.filter(({ value }) => value.trim() !== ""));',
    replacement: "return new SecretSet([]);",
    faults: ["codex_kill"],
  },
  /** An attempt's number is never given twice. */
  attempts: {
    file: "src/queue/attempts.js",
    line: "redis.call('HSET', KEYS[1], 'next', attempt + 1, 'open', attempt, 'claim', ARGV[3])",
    replacement: "redis.call('HSET', KEYS[1], 'next', attempt, 'open', attempt, 'claim', ARGV[3])",
    faults: ["worker_kill"],
  },
} as const satisfies Record<string, Guard>;
export type GuardName = keyof typeof GUARDS;
export const GUARD_NAMES = Object.keys(GUARDS) as GuardName[];

/** Takes one guard out of a copy of dist/. Throws Error when the line is not there exactly once. */
export function breakGuard(dist: string, name: GuardName): void {
  const { file, line, replacement }: Guard = GUARDS[name];
  const path = join(dist, file);
  const before = readFileSync(path, "utf8");
  const found = before.split(line).length - 1;
  if (found !== 1)
    throw new Error(
      `the guard ${name} is there ${found} times in ${file}, not once; scripts/chaos/guards.ts must follow the code: ${line}`,
    );
  writeFileSync(
    path,
    before.replace(line, () => replacement),
  );
}
