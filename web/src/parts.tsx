// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";
import { Refused, segment } from "./ask.ts";
import type { Mark } from "./charts/palette.ts";
import { visible } from "./charts/words.ts";

// Small parts that all pages share.

/** A shape for each outcome: colour is never the only sign. */
const SHAPES: Record<Mark, ComponentChildren> = {
  completed: <path d="M2 6.5 5 9.5 10 3" />,
  incomplete: (
    <>
      <circle cx="6" cy="6" r="4.2" />
      <path d="M6 1.8a4.2 4.2 0 0 1 0 8.4z" fill="currentColor" stroke="none" />
    </>
  ),
  failed: <path d="m2.5 2.5 7 7m0-7-7 7" />,
  refused: (
    <>
      <circle cx="6" cy="6" r="4.2" />
      <path d="m3 9 6-6" />
    </>
  ),
  cancelled: <path d="M2.5 6h7" />,
  running: <path d="M3.5 2.2v7.6L10 6z" fill="currentColor" />,
  waiting: <circle cx="6" cy="6" r="2" fill="currentColor" stroke="none" />,
};

export function Shape({ mark }: { mark: Mark }) {
  return (
    <svg class={`shape is-${mark}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      {SHAPES[mark]}
    </svg>
  );
}

/** A shape and a word. */
export function State({ mark, children }: { mark: Mark; children: ComponentChildren }) {
  return (
    <span class={`state is-${mark}`}>
      <Shape mark={mark} />
      {children}
    </span>
  );
}

/** Text that others chose: whatever direction it is written in, and however long it is, what stands around it stays. */
export function Name({ children }: { children: string }) {
  return <bdi class="name">{visible(children)}</bdi>;
}

export function ActivationLink({ id }: { id: string }) {
  return (
    <Link href={`/activations/${segment(id)}`}>
      <Name>{id}</Name>
    </Link>
  );
}

/** A moment: the clock's time here, and all of it as a tooltip. */
export function Moment({ at, date = false }: { at: string | number; date?: boolean }) {
  const time = new Date(at);
  const sameDay = time.toDateString() === new Date().toDateString();
  const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  return (
    <time dateTime={time.toISOString()} title={time.toISOString()}>
      {date || !sameDay ? `${time.toLocaleDateString("en-CA")} ` : ""}
      {clock}
    </time>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** What went wrong, in words; what was shown before stays where it is. */
export function Trouble({ error }: { error: unknown }) {
  if (error === null) return null;
  const text =
    error instanceof Refused
      ? error.message
      : error instanceof TypeError
        ? "The server cannot be reached just now; this page tries again."
        : error instanceof Error
          ? error.message
          : "Something went wrong.";
  return (
    <p class="trouble" role="alert">
      {text}
    </p>
  );
}

/** Instead of a page of what is not there. */
export function NotThere({ what, id }: { what: "run" | "activation" | "page"; id: string }) {
  return (
    <section class="card empty">
      <h1>No such {what}</h1>
      <p>
        Nothing of {what === "page" ? "a page at" : `the ${what}`} <Name>{id}</Name> is known here: it was never queued at this server, or
        was removed since.
      </p>
      <p>
        <Link href="/">All runs</Link>
      </p>
    </section>
  );
}

export function isUnknown(error: unknown): boolean {
  return error instanceof Refused && (error.status === 404 || error.status === 422);
}
