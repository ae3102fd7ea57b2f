// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { Leftover } from "../host/leftover.ts";
import { reapDead } from "./reap.ts";
import type { Sandbox } from "./types.ts";
import { unrecordedLeftovers } from "./unrecorded.ts";

const EVERY_MS = 60_000;

/** What was removed, or was to be. "abandoned": a sandbox of this process that could not be removed at its end. */
export interface Removed {
  kind: Leftover["kind"] | "abandoned";
  done: boolean;
}

export interface Reaper {
  /** Waits for a reaping that is under way. After the worker's last session. */
  stop(): Promise<void>;
}

/**
 * Removes the sandboxes of workers that were killed, and what they left before or after one's record: all that is there before it
 * resolves, since an activation must not run beside its own ghost, then what is found every minute. `sharedRoot`: what all root
 * workers share; null for others. Does not keep the process alive. Throws when the first look
 * cannot be had; later faults are logged.
 */
export async function startReaper(options: {
  stateDir: string;
  sharedRoot: string | null;
  /** Of this process: those whose removal failed. Tried again each time, and once more at the stop. */
  abandoned: Set<Pick<Sandbox, "id" | "destroy">>;
  log: Logger;
  everyMs?: number;
  /** Hears of each thing that was to be removed. */
  onRemoved?: (what: Removed) => void;
}): Promise<Reaper> {
  const { stateDir, sharedRoot, abandoned, log, everyMs = EVERY_MS, onRemoved = () => undefined } = options;
  async function destroyAbandoned(): Promise<void> {
    for (const sandbox of abandoned) {
      const { cleanup_error } = await sandbox.destroy();
      onRemoved({ kind: "abandoned", done: cleanup_error === null });
      if (cleanup_error === null) abandoned.delete(sandbox);
      if (cleanup_error === null) log.info({ sandbox: sandbox.id }, "removed a sandbox that could not be removed before");
      else log.error({ sandbox: sandbox.id, cleanup_error }, "a sandbox still cannot be removed");
    }
  }
  async function reap(): Promise<void> {
    await destroyAbandoned();
    for (const { record, error } of await reapDead(stateDir)) {
      const facts = { sandbox: record.id, activation_id: record.owner.activation_id, attempt: record.owner.attempt };
      onRemoved({ kind: "sandbox", done: error === null });
      if (error === null) log.info(facts, "removed the sandbox of a worker that was killed");
      else log.error({ ...facts, cleanup_error: error }, "a sandbox of a worker that was killed could not be removed");
    }
    for await (const { kind, what, why, remove } of unrecordedLeftovers(stateDir, sharedRoot)) {
      const error = await remove();
      onRemoved({ kind, done: error === null });
      if (error === null) log.info({ kind, what, why }, "removed what a worker that was killed had left");
      else log.warn({ kind, what, why, cleanup_error: error }, "what a worker that was killed had left stays for now");
    }
  }
  await reap();
  let busy: Promise<void> | null = null;
  const timer = setInterval(() => {
    busy ??= reap()
      .catch((error: unknown) => log.error({ err: error }, "sandboxes of killed workers could not be looked for"))
      .finally(() => (busy = null));
  }, everyMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await busy;
      await destroyAbandoned(); // else only the next worker on this host would
    },
  };
}
