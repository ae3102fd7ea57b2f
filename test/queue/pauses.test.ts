// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { toldWaitMs } from "../../src/codex/told-wait.ts";
import { retryPauseMs } from "../../src/queue/disposal.ts";
import { modelServerOf } from "../../src/queue/model-limiter.ts";
import { activationOf } from "./rig.ts";

describe("how long is waited", () => {
  it.each([
    [1, 0.5, 3_750],
    [2, 0.999, 9_995],
    [3, 0, 10_000],
    [40, 0.5, 225_000],
  ])("after %s charged attempts it is anything between the doubled base and its half", (charged, random, ms) => {
    expect(retryPauseMs({ retry_base_ms: 5_000, retry_max_ms: 300_000 }, charged, random)).toBe(ms);
  });

  it.each([
    ["stream disconnected before completion: Rate limit reached for gpt in org. Please try again in 1.2s. Visit x", 1_200],
    ["unexpected status 503 Service Unavailable: Overloaded. Please try again in 4s., url: http://127.0.0.1/v1", 4_000],
    ["Please try again in 20ms.", 20],
    ["Please try again in 6m0s.", 360_000],
    ["please try again in 2 minutes 5 seconds", 125_000],
    ["try again in 9h", 3_600_000],
    ["try again in 3s. No: try again in 4s", 4_000],
    ["exceeded retry limit, last status: 429 Too Many Requests", null],
    ["try again in a while", null],
    [`try again in ${"9".repeat(1_000)}s`, null],
  ])("%j asks for %s ms", (text, ms) => {
    expect(toldWaitMs(text)).toBe(ms);
  });

  it("one model server is one origin, whatever its path or capture key", () => {
    const base_url = "http://model.test:8000/ng-rollout/{capture_key}/v1";
    expect(modelServerOf(activationOf("a", { model: { base_url } }))).toBe("http://model.test:8000");
    expect(modelServerOf(activationOf("a"))).toBe("https://api.openai.com");
  });
});
