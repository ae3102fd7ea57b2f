// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme, themeNow } from "./theme.ts";

applyTheme(themeNow());
render(<App />, document.querySelector("#page")!);
