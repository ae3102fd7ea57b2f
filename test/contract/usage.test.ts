// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Usage } from "../../src/contract/response.ts";
import type { Evidence } from "../../src/contract/result.ts";
import { countSessions } from "../../src/contract/session-usage.ts";
import { sumUsage, UNTOLD_COUNTERS, usageOfAttempts, usageText } from "../../src/contract/usage.ts";
import { attemptOf } from "../support/result-documents.ts";

const USAGE: Usage = {
  input_tokens: 900,
  output_tokens: 100,
  total_tokens: 1_000,
  cached_input_tokens: 400,
  cache_write_input_tokens: 30,
  reasoning_output_tokens: 20,
};
const UNTOLD: Usage = { ...USAGE, cached_input_tokens: null, cache_write_input_tokens: null, reasoning_output_tokens: null };

describe("usages added up", () => {
  it("have every kind, and say which parts are unknown and which counters some parts do not tell", () => {
    expect(sumUsage([USAGE, null, { ...UNTOLD, cached_input_tokens: 5 }, undefined])).toEqual({
      usage: {
        input_tokens: 1_800,
        output_tokens: 200,
        total_tokens: 2_000,
        cached_input_tokens: 405,
        cache_write_input_tokens: 30,
        reasoning_output_tokens: 20,
      },
      known: 2,
      unknown: 2,
      untold: { cached_input_tokens: 0, cache_write_input_tokens: 1, reasoning_output_tokens: 1 },
    });
  });

  it("are null where nothing is known, which is not zero", () => {
    expect(sumUsage([null, null])).toMatchObject({ usage: null, known: 0, unknown: 2 });
    expect(sumUsage([UNTOLD, UNTOLD]).usage).toMatchObject({ input_tokens: 1_800, cached_input_tokens: null });
  });

  it("take parts of earlier records, which lack the cache writes", () => {
    const { cache_write_input_tokens: _written, ...older } = USAGE;
    expect(sumUsage([older, USAGE])).toMatchObject({ usage: { cache_write_input_tokens: 30 }, untold: { cache_write_input_tokens: 1 } });
  });

  it("are the same in any order, and in any pieces", () => {
    const counter = fc.option(fc.integer({ min: 1, max: 1e9 }));
    const part = fc.option(
      fc.record({
        input_tokens: fc.nat(1e9),
        output_tokens: fc.nat(1e9),
        total_tokens: fc.nat(2e9),
        cached_input_tokens: counter,
        cache_write_input_tokens: counter,
        reasoning_output_tokens: counter,
      }),
    );
    fc.assert(
      fc.property(fc.array(part), fc.nat(20), (parts, at) => {
        const whole = sumUsage(parts);
        expect(sumUsage(parts.toReversed())).toEqual(whole);
        expect(sumUsage([sumUsage(parts.slice(0, at)).usage, sumUsage(parts.slice(at)).usage]).usage).toEqual(whole.usage);
        for (const name of UNTOLD_COUNTERS)
          expect(whole.untold[name]).toBe(parts.filter((one) => one !== null && one[name] === null).length);
      }),
    );
  });

  it("are told with what is known of them", () => {
    expect(usageText(USAGE, String)).toBe("900 in (400 cached, 30 written to the cache), 100 out (20 reasoning)");
    expect(usageText(UNTOLD, String)).toBe("900 in, 100 out");
  });
});

describe("the sessions of an activation", () => {
  const evidence = (facts: Partial<Evidence>) => ({ turn_started: true, threads: [], ...facts }) as unknown as Evidence;
  const lost = attemptOf(0, {
    failure: { failure_kind: "session_lost" } as never,
    observations: { source: "codex", records: [], gaps: [{ code: "agent_activation_interrupted" }] },
  });

  it("are known, or may have called the model and are not; what never began took nothing", () => {
    const never = attemptOf(1, { evidence: evidence({ turn_started: false }) });
    const refused = attemptOf(2, { observations: { source: "codex", records: [], gaps: [{ code: "harness_not_run" }] } });
    const stopped = attemptOf(3, { ...lost, attempt: 3, failure: { failure_kind: "shutdown" } as never });
    const silent = attemptOf(4, { evidence: evidence({}) });
    const counted = attemptOf(5, { evidence: evidence({}), usage: USAGE });
    expect(countSessions([lost, never, refused, stopped, silent, counted], USAGE)).toEqual({ known: 1, unknown: 2, open_model_calls: 0 });
  });

  it("have calls that may have been billed, whether or not their usage is known", () => {
    const open = { thread_id: "t", open_model_calls: 1 } as Evidence["threads"][number];
    const attempts = [
      attemptOf(0, { evidence: evidence({ threads: [open] }) }),
      attemptOf(1, { evidence: evidence({ threads: [open, open] }), usage: USAGE }),
    ];
    expect(countSessions(attempts, USAGE)).toEqual({ known: 1, unknown: 0, open_model_calls: 3 });
  });

  it("of earlier records have the result's usage, of the last one", () => {
    const older = [0, 1].map((attempt) => {
      const { usage: _usage, ...rest } = attemptOf(attempt, { evidence: evidence({}) });
      return rest;
    });
    expect(countSessions(older, USAGE)).toEqual({ known: 1, unknown: 1, open_model_calls: 0 });
  });

  it("took together what each took", () => {
    expect(usageOfAttempts([lost, attemptOf(1, { usage: USAGE }), attemptOf(2, { usage: UNTOLD })])).toEqual(
      sumUsage([USAGE, UNTOLD]).usage,
    );
    expect(usageOfAttempts([lost])).toBeNull();
  });
});
