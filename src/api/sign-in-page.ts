// SPDX-License-Identifier: Apache-2.0
import { html, raw } from "hono/html";

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --paper: #f4f5f7; --card: #fff; --line: #aab2be; --accent: #1f5fbf; --bad: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --paper: #12161c; --card: #1b212a; --line: #566070; --accent: #8ab4f8; --bad: #f2b8b5 } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif }
main { width: 100%; max-width: 24rem; padding: 1.5rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem }
h1 { margin: 0 0 1rem; font-size: 1.25rem }
label { display: block; font-weight: 600 }
input, button { width: 100%; margin-top: .25rem; padding: .6rem; font: inherit; color: inherit; background: transparent; border: 1px solid var(--line); border-radius: .35rem }
button { margin-top: 1rem; border-color: var(--accent); background: var(--accent); color: var(--card); font-weight: 600; cursor: pointer }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
p { margin: .75rem 0 0; font-size: .875rem } .problem { color: var(--bad); font-weight: 600 }
code { overflow-wrap: anywhere }
a { color: var(--accent) }
`;

/** Goes on where the browser is signed in after all. Without scripts the form is there. */
export const AGAIN_SCRIPT = `fetch("/sign-in/state").then((answer) => answer.json()).then(({ signed_in }) => { if (signed_in) location.replace(document.querySelector("[name=next]").value); });\n`;

/** A form for one key; nothing of it comes from elsewhere. `next` is a path of this server. Pure. */
export function signInPage({ next, problem }: { next: string; problem: string | null }) {
  return page({
    title: "Sign in to Rollcall",
    head: problem === null ? html`<script src="/sign-in/again.js" defer></script>` : "",
    body: html`
      <form method="post" action="/sign-in">
        <input type="hidden" name="next" value="${next}" />
        <input type="text" name="username" value="rollcall" autocomplete="username" hidden />
        <label for="key">API key</label>
        <input
          id="key"
          name="key"
          type="password"
          required
          autofocus
          autocomplete="current-password"
          spellcheck="false"
          ${problem === null ? "" : raw('aria-invalid="true" aria-describedby="problem"')}
        />
        ${problem === null ? "" : html`<p id="problem" class="problem" role="alert">${problem}</p>`}
        <button>Sign in</button>
      </form>
      <p>
        Of the server's keys file, <code>ROLLCALL_API_KEY</code>, or the file <code>api-key</code> in its state directory, which the log
        names at the start.
      </p>
    `,
  });
}

/** A button, because a link may be followed by mistake, or by another site. Pure. */
export function signOutPage() {
  return page({
    title: "Sign out of Rollcall",
    head: "",
    body: html`<form method="post" action="/sign-out"><button autofocus>Sign out</button></form>
      <p><a href="/">Stay signed in</a></p>`,
  });
}

function page({ title, head, body }: { title: string; head: unknown; body: unknown }) {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>${title}</title>
        <link rel="icon" href="data:," />
        <style>
          ${raw(STYLE)}
        </style>
        ${head}
      </head>
      <body>
        <main>
          <h1>${title}</h1>
          ${body}
        </main>
      </body>
    </html>`;
}
