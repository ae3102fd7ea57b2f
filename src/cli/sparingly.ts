// SPDX-License-Identifier: Apache-2.0

const QUIET_MS = 30_000;
/** Messages that hold something of their own each would fill this process. */
const MOST_KINDS = 100;

/** Tells an error at once, and one with the same message again after 30 s at the earliest, with the number of those between. */
export function sparingly(tell: (error: Error, untold: number) => void, now = () => performance.now()): (error: Error) => void {
  const kinds = new Map<string, { at: number; untold: number }>();
  return (error) => {
    const kind = kinds.get(error.message);
    if (kind !== undefined && now() - kind.at < QUIET_MS) {
      kind.untold++;
      return;
    }
    if (kinds.size >= MOST_KINDS) kinds.clear();
    kinds.set(error.message, { at: now(), untold: 0 });
    tell(error, kind?.untold ?? 0);
  };
}
