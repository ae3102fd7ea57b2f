// SPDX-License-Identifier: Apache-2.0

/** SIGINT or SIGTERM once: `signal`; twice: `now` as well; three times: the process is gone. `dispose` takes the handlers off. */
export function stopSignals(): { signal: AbortSignal; now: AbortSignal; dispose: () => void } {
  const first = new AbortController();
  const second = new AbortController();
  const onSignal = (): void => {
    if (!first.signal.aborted) first.abort();
    else if (!second.signal.aborted) second.abort();
    else process.exit(75);
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return {
    signal: first.signal,
    now: second.signal,
    dispose: () => void process.off("SIGINT", onSignal).off("SIGTERM", onSignal),
  };
}

/** The terminal is gone: go on. Answers how to take the handler off. */
export function onHangup(act: () => void): () => void {
  process.on("SIGHUP", act);
  return () => void process.off("SIGHUP", act);
}
