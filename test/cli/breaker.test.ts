// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, step, withFault } from "../../examples/stand-ins/script.ts";
import type { Summary } from "../../src/rollout/summary.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it("run --breaker stop ends with 75 when different tasks fail alike, says why once, and the same command goes on later [E7]", async () => {
  const root = tempDir();
  const out = join(root, "out");
  let broken = true;
  const answer = step(say("Done."));
  const refusal = withFault(answer, { kind: "status", status: 400, body: "the model is not loaded" });
  const model = await startModelServer({ scriptFor: () => ({ steps: [broken ? refusal : answer] }) });
  try {
    writeFileSync(
      join(root, "tasks.jsonl"),
      Array.from({ length: 7 }, (_, n) => `${JSON.stringify({ id: `t${n}`, input: "x" })}\n`).join(""),
    );
    writeFileSync(join(root, "rollcall.toml"), "[breaker]\nafter = 3\n");
    const where = ["--out", out, "--model", "stand-in", "--model-base-url", model.captureBaseUrl, "--config", join(root, "rollcall.toml")];
    const env = { OPENAI_API_KEY: "k", XDG_STATE_HOME: join(root, "state") };
    const run = () => rollcall(["run", join(root, "tasks.jsonl"), ...where, "--breaker", "stop", "--concurrency", "2"], { env });

    const stopped = await run();
    expect(stopped.code).toBe(75);
    expect(
      stopped.stderr.match(/the run pauses itself: 3 different tasks in a row failed alike \(turn_failed, model_provider: .*/g),
    ).toEqual([expect.stringMatching(/the model is not loaded.*; \d+ tasks are untouched, no further one is started$/)]);
    const summary = JSON.parse(readFileSync(join(out, "summary.json"), "utf8")) as Summary;
    expect(summary).toMatchObject({ interrupted: true, breaker_openings: [{ cause_code: "turn_failed", closed_at: null, trials: 0 }] });
    expect(summary.missing).toBe(7);

    broken = false;
    const again = await run();
    expect(again.code).toBe(0);
    expect(again.stderr).not.toContain("pauses itself");
    expect(JSON.parse(readFileSync(join(out, "summary.json"), "utf8"))).toMatchObject({ missing: 0, by_status: { completed: 7 } });
  } finally {
    await model.close();
  }
}, 150_000);
