// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { cp, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Fault } from "./schedule.ts";

interface Edit {
  /** Below dist/. */
  file: string;
  line: string;
  replacement: string;
}

interface Guard {
  /** All places where it is kept. */
  edits: readonly Edit[];
  /** The faults that need it most; what is injected when nothing else is asked for. */
  faults: readonly Fault[];
}

/** Lines of the product that keep a promise each; without one of them the oracle must report a breach. */
export const GUARDS = {
  /** A job whose activation has ended does not run again: looked for at the claim, and once more when its attempt is taken. */
  commit: {
    edits: [
      {
        file: "src/activation/attempt.js",
        line: "if (standing !== null && standing.generation >= generation)",
        replacement: "if (false)",
      },
      {
        file: "src/queue/claim.js",
        line: "if (committed !== null && committed.generation >= generation)",
        replacement: "if (false)",
      },
    ],
    faults: ["redis_freeze", "redis_kill"],
  },
  /** The first end stands. */
  fence: {
    edits: [
      {
        file: "src/artifacts/documents.js",
        line: "if (await documents.create(resultPath(activationId), text)) {",
        replacement:
          "await documents.remove(resultPath(activationId), await documents.read(resultPath(activationId)));\n" +
          "        if (await documents.create(resultPath(activationId), text)) {",
      },
    ],
    faults: ["worker_freeze", "redis_freeze"],
  },
  /** Sandboxes of killed workers are removed. */
  reaper: {
    edits: [
      {
        file: "src/sandbox/reap.js",
        line: "if (!isAlive(record.owner.process))",
        replacement: "if (false)",
      },
    ],
    faults: ["worker_kill"],
  },
  /** Secrets are taken out of what is kept. */
  redaction: {
    edits: [
      {
        file: "src/redact/secret-set.js",
        line: 'return new SecretSet(inputs.filter(({ value }) => value.trim() !== ""));',
        replacement: "return new SecretSet([]);",
      },
    ],
    faults: ["codex_kill"],
  },
  /** An attempt's number is never given twice. */
  attempts: {
    edits: [
      {
        file: "src/queue/attempts.js",
        line: "'next', attempt + 1, 'open', attempt",
        replacement: "'next', attempt, 'open', attempt",
      },
    ],
    faults: ["worker_kill"],
  },
} as const satisfies Record<string, Guard>;
export type GuardName = keyof typeof GUARDS;
export const GUARD_NAMES = Object.keys(GUARDS) as GuardName[];

/** A copy of the built program that may be changed; answers where its dist/ is. `copy` must exist. */
export async function copyProgram(dist: string, copy: string): Promise<string> {
  await cp(dist, join(copy, "dist"), { recursive: true });
  for (const name of ["node_modules", "package.json"]) await symlink(join(dist, "..", name), join(copy, name));
  return join(copy, "dist");
}

/** Takes one guard out of a copy of dist/. Throws Error when a line is not there exactly once. */
export function breakGuard(dist: string, name: GuardName): void {
  const { edits }: Guard = GUARDS[name];
  for (const { file, line, replacement } of edits) {
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
}
