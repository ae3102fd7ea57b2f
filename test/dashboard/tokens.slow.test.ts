// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type { Usage } from "../../src/contract/response.ts";
import type { Evidence, ModelCall, Thread } from "../../src/contract/result.ts";
import { usageOfAttempts } from "../../src/contract/usage.ts";
import { announceEnd } from "../../src/queue/ended.ts";
import { startApiRig } from "../api/rig.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { HOSTILE } from "./live-run.ts";
import { overflowOf, watchedBrowser } from "./watched-browser.ts";

const WEB = fileURLToPath(new URL("../../dist/web/", import.meta.url));
const WAIT = { timeout: 60_000 };
const TOKENS = {
  input_tokens: 5_000,
  cached_input_tokens: 400,
  cache_write_input_tokens: 30,
  output_tokens: 100,
  reasoning_output_tokens: 20,
};
const USAGE: Usage = { ...TOKENS, total_tokens: 5_100 };
const THREADS: Thread[] = [
  { thread_id: "t0", parent_thread_id: null, agent_path: null, model_calls: 1, tokens: TOKENS, open_model_calls: 0 },
  { thread_id: "t1", parent_thread_id: "t0", agent_path: HOSTILE, model_calls: 0, tokens: TOKENS, open_model_calls: 1 },
];
const CALLS: ModelCall[] = [
  { thread_id: "t0", response_id: HOSTILE, at: "2026-11-29T16:00:02.000Z", kind: "turn", tokens: TOKENS },
  { thread_id: "t1", response_id: null, at: null, kind: "compaction", tokens: { ...TOKENS, cache_write_input_tokens: null } },
];
const EVIDENCE: Evidence = {
  turn_started: true,
  turn_completed: false,
  model_answered: true,
  exit_code: 1,
  signal: null,
  oom_killed: null,
  memory_limit_reached: null,
  launch_error: null,
  stopped: null,
  elapsed_ms: 1_000,
  reconnects: 0,
  tools_called: {},
  required_tools: [],
  required_tools_missing: [],
  cleanup_error: null,
  threads: [],
  model_calls: [],
};

it("the run's page has the tokens of all attempts by kind, an activation's page each attempt's threads and model calls; what others named is text", async () => {
  const rig = await startApiRig({ ports: { web: WEB } });
  const browser = await watchedBrowser();
  for (const id of ["act-1", "act-2"]) {
    const attempts = [
      attemptOf(0, { usage: USAGE, evidence: { ...EVIDENCE, threads: THREADS, model_calls: CALLS } }),
      attemptOf(1, { evidence: EVIDENCE }),
      attemptOf(2, { usage: USAGE, status: "completed" }),
    ];
    const { result } = await rig.store.commit(resultOf(id, { attempts, usage: usageOfAttempts(attempts) }));
    await announceEnd(rig.queues, result);
  }
  const { page, errors } = browser;
  await page.goto(`${rig.api.origin}/sign-in?next=/runs/run-1`);
  await page.keyboard.type(rig.key);
  await page.keyboard.press("Enter");
  const tokens = page.locator("figure").filter({ hasText: "Tokens" });
  await tokens
    .getByText("20,400 in all: 20,000 in (1,600 cached, 120 written to the cache), 400 out (80 reasoning); median 10.2 k")
    .waitFor(WAIT);

  await page.goto(`${rig.api.origin}/activations/act-1`);
  const ending = page.getByRole("region", { name: "How it ended" });
  await ending.getByText("10,000 in (800 cached, 60 written to the cache), 200 out (40 reasoning)").waitFor(WAIT);
  expect(await ending.innerText()).toContain("not all are known");
  expect(await page.getByRole("region", { name: "Attempt 1" }).innerText()).toMatch(/Tokens\s+not known/);
  const attempt = page.getByRole("region", { name: "Attempt 0" });
  const cells = async (table: string): Promise<string[][]> => {
    const rows = await attempt.getByRole("table", { name: table, exact: true }).locator("tbody tr").all();
    return Promise.all(rows.map(async (row) => (await row.locator("th, td").allInnerTexts()).map((text) => text.trim())));
  };
  const hostile = HOSTILE.replace("\u202E", "\\u202e");
  expect(await cells("Model calls by thread")).toEqual([
    ["root", "1", "0", "5,000", "400", "30", "100", "20"],
    [hostile, "0", "1", "5,000", "400", "30", "100", "20"],
  ]);
  await attempt.getByText("Each model call").click();
  expect(await cells("Model calls")).toEqual([
    ["2.0 s", "root", "turn", "5,000", "400", "30", "100", "20", hostile],
    ["–", hostile, "compaction", "5,000", "400", "–", "100", "20", "–"],
  ]);
  expect(await page.locator("main img").count()).toBe(0);
  for (const path of ["/runs/run-1", "/activations/act-1"]) {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto(rig.api.origin + path);
    await page.getByText("1,600 cached").or(page.getByText("Each model call")).first().waitFor(WAIT);
    if (path.startsWith("/act")) await page.getByText("Each model call").click();
    expect([path, await overflowOf(page)]).toEqual([path, 0]);
  }
  expect([errors, browser.outside]).toEqual([[], []]);
});
