// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { answerTo } from "../../src/queue/answers.ts";
import { ACTIVATION_STATES } from "../../src/queue/find-activation.ts";

const page = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8");

it("the page about operations has the answer to each request in each state", () => {
  const rows = [...page.matchAll(/^\| `([a-z]+)` +\|([^\n]*)\|$/gm)];
  const cells = new Map(rows.map(([, state, rest]) => [state, rest!.split("|").map((cell) => cell.trim())]));
  for (const state of ACTIVATION_STATES) {
    const expected = (["cancel", "retry", "pause", "resume"] as const).map((action) => answerTo(action, state).text);
    expect(cells.get(state), state).toEqual(expected);
  }
});
