// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { allPids, readProc } from "../../src/sandbox/processes.ts";
import type { OwnerRecord } from "../../src/sandbox/owner-record.ts";

const LOOK_MS = 100;
/** Command lines of all processes: not at every look. */
const WORDS_EVERY = 10;
/** This process late by so much: so may the workers have been. */
const STALL_MS = 1_000;

export interface SeenSandbox {
  record: OwnerRecord;
  first_at: number;
  last_at: number;
}

/** What can only be seen while the run goes on. */
export interface Watch {
  readonly sandboxes: readonly SeenSandbox[];
  /** Those whose records are there now. */
  alive(): OwnerRecord[];
  /** sha256 of each result.json as it was when first seen, by activation. */
  readonly ends: ReadonlyMap<string, string>;
  readonly stalls: readonly { from: number; to: number }[];
  /** Command lines that held a secret. */
  readonly shown: ReadonlySet<string>;
  stop(): void;
}

/** Looks at owner records, results and command lines ten times a second. `secret`: part of every secret; `except`: a process that may. */
export function startWatch(parts: { records: string; artifacts: string; secret: string; except: () => number }): Watch {
  const sandboxes = new Map<string, SeenSandbox>();
  const ends = new Map<string, string>();
  const stalls: { from: number; to: number }[] = [];
  const shown = new Set<string>();
  let present = new Set<string>();
  let last = Date.now();
  let looks = 0;

  function look(): void {
    const now = Date.now();
    if (now - last > LOOK_MS + STALL_MS) stalls.push({ from: last, to: now });
    last = now;
    present = new Set(namesIn(parts.records).filter((name) => name.endsWith(".json") && !name.startsWith(".")));
    for (const name of present) {
      const seen = sandboxes.get(name);
      if (seen !== undefined) seen.last_at = now;
      else {
        const record = readJson(join(parts.records, name)) as OwnerRecord | null;
        if (record !== null) sandboxes.set(name, { record, first_at: now, last_at: now });
      }
    }
    for (const id of namesIn(parts.artifacts)) {
      if (ends.has(id)) continue;
      const digest = digestOf(join(parts.artifacts, id, "result.json"));
      if (digest !== null) ends.set(id, digest);
    }
    if (looks++ % WORDS_EVERY !== 0) return;
    for (const pid of allPids()) {
      const words = readProc(pid, "cmdline") ?? "";
      if (pid !== parts.except() && words.includes(parts.secret))
        shown.add(`arguments of process ${pid}: ${words.slice(0, 40).replaceAll("\0", " ")}...`);
    }
  }
  const timer = setInterval(look, LOOK_MS);
  return {
    get sandboxes() {
      return [...sandboxes.values()];
    },
    alive: () => [...sandboxes].flatMap(([name, { record }]) => (present.has(name) ? [record] : [])),
    ends,
    stalls,
    shown,
    stop() {
      clearInterval(timer);
      look();
    },
  };
}

/** sha256 of a file; null when it is not there. */
export function digestOf(path: string): string | null {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch {
    return null;
  }
}

/** ms since 1970. */
export function modifiedAt(path: string): number {
  return statSync(path).mtimeMs;
}

export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** What a JSON file holds; null when it is not there, or not written to its end. */
export function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}
