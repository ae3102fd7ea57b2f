// SPDX-License-Identifier: Apache-2.0
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type { Page } from "playwright-core";
import { announceEnd } from "../../src/queue/ended.ts";
import { asRolloutResult, putRolloutEnd, putVerification, type RolloutEnd } from "../../src/resources/documents.ts";
import { changeRollout, readRollout, type RolloutRecord } from "../../src/resources/record.ts";
import { startApiRig, type ApiRig } from "../api/rig.ts";
import { activationOf } from "../queue/rig.ts";
import { startChain } from "../resources/rig.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { HOSTILE } from "./live-run.ts";
import { overflowOf, watchedBrowser } from "./watched-browser.ts";

const WEB = fileURLToPath(new URL("../../dist/web/", import.meta.url));
const WAIT = { timeout: 60_000 };
const SHOTS = process.env["ROLLCALL_SHOTS"];
const SCORES = [0, 0.15, 0.3, 0.3, 0.45, 0.5, 0.6, 0.6, 0.7, 0.75, 0.8, 0.85, 1, 1, 1, null];
const END: RolloutEnd = {
  schema: "rollcall.rollout/1",
  protocol: "session",
  resources_session_id: "s-1",
  row_sha256: "0".repeat(64),
  counted: 1,
  verification_failure: null,
  cleanup_error: null,
  ended_at: "2026-11-29T16:02:00.000Z",
};
const FAILURE: RolloutEnd["verification_failure"] = {
  failure_kind: "verifier_error",
  cause_code: "verification_failed",
  server_names: [],
  stage: "verification",
  failure_reason: `the resources server's /verify: HTTP 500: ${HOSTILE}`,
  terminal: true,
  status_code: 502,
};

async function shot(page: Page, name: string): Promise<void> {
  if (SHOTS === undefined) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
}

/** Rollouts that are over, each as its steps leave it. */
async function seedScores({ queues, store }: ApiRig): Promise<void> {
  for (const [index, reward] of SCORES.entries()) {
    const id = `act-${index}`;
    const took = { queued_ms: 10, setup_ms: 10, run_ms: 4_000 + 900 * index, collect_ms: 10 };
    const attempts = [attemptOf(0, { status: "completed" })];
    const usage = {
      input_tokens: 9,
      output_tokens: 1,
      total_tokens: 900 * index,
      cached_input_tokens: null,
      reasoning_output_tokens: null,
      cache_write_input_tokens: null,
    };
    const { result } = await store.commit(resultOf(id, { attempts, usage, timing: took, ended_at: new Date().toISOString() }));
    const why = reward === null ? { verification_failure: FAILURE, cleanup_error: `/close_session: HTTP 500: ${HOSTILE}` } : {};
    await putRolloutEnd(store, id, 0, { ...END, ...why });
    const fields = { judge: HOSTILE, criteria: Array.from({ length: 400 }, (_, n) => ({ criterion: `criterion ${n}`, score: reward })) };
    const of = { schema: "rollcall.verification/1", verified_at: END.ended_at, cut: false, answer: { reward: 0 } } as const;
    if (reward !== null) await putVerification(store, result, 0, { ...of, reward, fields });
    await announceEnd(queues, (await asRolloutResult(store, result))!);
  }
}

it("the run's page tells how rewards are spread, which rollout has which and where the others are; a rollout's page how it was scored, or why it was not; what a verifier says is text", async () => {
  const rig = await startApiRig({ ports: { web: WEB } });
  const [chain, browser] = await Promise.all([startChain({}, {}, rig), watchedBrowser(), seedScores(rig)]);
  const put = async (id: string, state: RolloutRecord["state"]): Promise<void> => {
    await chain.add(activationOf(id));
    const kept = (await readRollout(rig.queues, id))!;
    await changeRollout(rig.queues, kept, { ...kept.record, state });
  };
  for (const id of ["open-1", "open-2"]) await put(id, "seed");
  for (const id of ["open-3", "open-4", "open-5"]) await put(id, "verify");
  const { page, errors } = browser;
  await page.goto(`${rig.api.origin}/sign-in?next=/runs/run-1`);
  await page.keyboard.type(rig.key);
  await page.keyboard.press("Enter");

  const rewards = page.locator("figure").filter({ hasText: "Reward" });
  await rewards.getByText("mean 0.6 of 15 scored, median 0.6; 1 ended without one").waitFor(WAIT);
  await rewards.locator("canvas").waitFor(WAIT);
  const progress = page.getByRole("region", { name: "Progress" });
  expect(await progress.innerText()).toMatch(/16 of 21[\s\S]*Wait for it\s+2[\s\S]*Verifying\s+3/);
  await page.locator("#activations tbody tr").nth(20).waitFor(WAIT);
  await shot(page, "rewards-run-light");
  await page.getByRole("button", { name: "Reward", exact: true }).click();
  await expect.poll(() => page.locator('#activations tbody td[data-name="Reward"]').first().innerText(), WAIT).toBe("1");
  await page.getByLabel("Reward", { exact: true }).selectOption("missing");
  await expect.poll(() => page.locator("#activations tbody tr").count(), WAIT).toBe(1);
  await page.getByRole("link", { name: "act-15" }).click();
  const score = page.getByRole("region", { name: "Reward" });
  await score.getByText("verification_failed").waitFor(WAIT);
  expect(await score.innerText()).toMatch(/none[\s\S]*HTTP 500: <img src=x onerror=alert\(1\)>\\u202egnp[\s\S]*could not be closed/);
  await shot(page, "rewards-unscored-light");

  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole("button", { name: /^Theme: light/ }).click();
  await page.goto(`${rig.api.origin}/activations/act-4`);
  await score.getByText("0.45", { exact: true }).waitFor(WAIT);
  await score.locator("summary").click();
  expect(await score.getByLabel("What the verifier said").innerText()).toMatch(
    /<img src=x onerror=alert\(1\)>\\u202egnp[\s\S]*… \d+,\d+ characters more are in the result$/,
  );
  expect([await overflowOf(page), await page.locator("main img").count()]).toEqual([0, 0]);
  await shot(page, "rewards-activation-phone-dark");
  await page.goto(`${rig.api.origin}/activations/open-3`);
  await page.getByText("scores it").waitFor(WAIT);
  await shot(page, "rewards-verifying-phone-dark");
  await page.goto(`${rig.api.origin}/runs/run-1`);
  await rewards.locator("canvas").waitFor(WAIT);
  await page.locator("#activations tbody tr").nth(20).waitFor(WAIT);
  expect(await overflowOf(page)).toBe(0);
  await shot(page, "rewards-run-phone-dark");
  if (SHOTS !== undefined) {
    await page.setViewportSize({ width: 1280, height: 900 });
    await shot(page, "rewards-run-dark");
  }
  expect([errors, browser.outside]).toEqual([[], []]);
});
