// SPDX-License-Identifier: Apache-2.0
import { readRoom, shortage, type Floors, type Room } from "./room.ts";

/** A sandbox may fill gigabytes in seconds; a look costs a few system calls. */
const INTERVAL_MS = 1_000;

/** Looks now and again whether there is room for another session; `stop` ends it. */
export interface RoomWatch {
  stop(): void;
}

/**
 * Calls `onChange` with what is too little, and with null when there is enough again; nothing while there always is. The
 * first look is over when this resolves.
 */
export async function watchRoom(options: {
  paths: readonly string[];
  floors: Floors;
  onChange: (reason: string | null) => void;
  /** Hears of each look. */
  onLook?: (room: Room, heldBack: boolean) => void;
  onError: (error: Error) => void;
  intervalMs?: number;
}): Promise<RoomWatch> {
  const { paths, floors, onChange, onLook, onError, intervalMs = INTERVAL_MS } = options;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let held: string | null = null;
  async function look(): Promise<void> {
    const room = await readRoom(paths);
    const reason = shortage(room, floors, held !== null);
    if (stopped) return;
    onLook?.(room, reason !== null);
    // Told once, not with every megabyte that comes or goes.
    if ((reason === null) !== (held === null)) onChange(reason);
    held = reason;
  }
  const next = (): void => {
    if (stopped) return;
    timer = setTimeout(() => void look().catch(onError).finally(next), intervalMs);
    timer.unref();
  };
  await look();
  next();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
