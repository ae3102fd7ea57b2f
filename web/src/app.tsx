// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { Link, Route, Switch, useLocation } from "wouter-preact";
import { NotThere } from "./parts.tsx";
import { ActivationPage } from "./pages/activation.tsx";
import { RunPage } from "./pages/run.tsx";
import { RunsPage } from "./pages/runs.tsx";
import { useTheme } from "./theme.ts";

/** What is around all pages, and which of them is shown. */
export function App() {
  const { theme, toggle } = useTheme();
  const [path] = useLocation();
  const main = useRef<HTMLElement>(null);
  const before = useRef(path);
  useEffect(() => {
    // A page within this one: who reads it by keyboard or by ear begins at its top, as with any page.
    if (before.current === path) return;
    before.current = path;
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [path]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <Link href="/" class="brand">
          Rollcall
        </Link>
        <nav aria-label="Pages">
          <Link href="/" aria-current={path === "/" ? "page" : undefined}>
            Runs
          </Link>
          <a href="/dashboard">Queues</a>
          <a href="/docs">API</a>
        </nav>
        <button type="button" class="quiet" onClick={toggle} aria-label={`Theme: ${theme}; change`}>
          {theme === "dark" ? "Light" : "Dark"}
        </button>
        <form method="post" action="/sign-out">
          <button class="quiet">Sign out</button>
        </form>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Switch>
          <Route path="/">
            <RunsPage />
          </Route>
          <Route path="/runs/:run_id">{({ run_id }) => <RunPage key={run_id} runId={run_id} theme={theme} />}</Route>
          <Route path="/activations/:id">{({ id }) => <ActivationPage key={id} id={id} />}</Route>
          <Route>
            <NotThere what="page" id={path} />
          </Route>
        </Switch>
      </main>
    </>
  );
}
