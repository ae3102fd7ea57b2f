// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { Refused } from "./ask.ts";

interface Props {
  /** On the button. */
  name: string;
  /** Asked before; absent = it is done at once. */
  question?: ComponentChildren;
  /** Does it, and says what that did. */
  act: () => Promise<string>;
  done: (told: string) => void;
  disabled?: boolean;
  danger?: boolean;
}

/** A button that changes something, and asks first where that cannot be undone. */
export function ActionButton({ name, question, act, done, disabled = false, danger = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const title = useId();
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      done(await act());
    } catch (thrown) {
      done(thrown instanceof Refused ? `Not done: ${thrown.message}` : "Not done: the server cannot be reached.");
    } finally {
      setBusy(false);
      dialog.current?.close();
    }
  };
  return (
    <>
      <button
        type="button"
        class={danger ? "danger" : ""}
        disabled={disabled || busy}
        onClick={() => (question === undefined ? void run() : dialog.current?.showModal())}
      >
        {name}
        {question === undefined ? "" : "…"}
      </button>
      {question !== undefined && (
        <dialog ref={dialog} aria-labelledby={title}>
          <h2 id={title}>{name}?</h2>
          <div>{question}</div>
          <p class="buttons">
            <button type="button" disabled={busy} class={danger ? "danger solid" : "solid"} onClick={() => void run()}>
              {name}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Back
            </button>
          </p>
        </dialog>
      )}
    </>
  );
}
