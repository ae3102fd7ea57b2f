// SPDX-License-Identifier: Apache-2.0
import { EXIT } from "../rollout/exit-code.ts";

/** What is orderly at a second signal takes less; what hangs must not hold the process. */
const AT_ONCE_MS = 5_000;

/**
 * SIGINT or SIGTERM once: `signal`; twice: `now` as well, and the process is gone within 5 s whatever it waits for; three times: at
 * once. `dispose` takes the handlers off.
 */
export function stopSignals(): { signal: AbortSignal; now: AbortSignal; dispose: () => void } {
  const first = new AbortController();
  const second = new AbortController();
  let force: NodeJS.Timeout | undefined;
  const exit = (): void => process.exit(EXIT.interrupted);
  const onSignal = (): void => {
    if (!first.signal.aborted) first.abort();
    else if (!second.signal.aborted) {
      force = setTimeout(exit, AT_ONCE_MS);
      second.abort();
    } else exit();
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return {
    signal: first.signal,
    now: second.signal,
    dispose() {
      clearTimeout(force);
      process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    },
  };
}

/** The terminal is gone: go on. Answers how to take the handler off. */
export function onHangup(act: () => void): () => void {
  process.on("SIGHUP", act);
  return () => void process.off("SIGHUP", act);
}
