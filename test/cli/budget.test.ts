// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, step } from "../../examples/stand-ins/script.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it("run ends with 5 when its tokens are used, starts nothing under the same budget, and under a larger one exactly the rest [E17]", async () => {
  const root = tempDir();
  const out = join(root, "out");
  const usage = { input_tokens: 900, cached_input_tokens: 0, output_tokens: 100, reasoning_output_tokens: 0 };
  const model = await startModelServer({ usage, scriptFor: () => ({ steps: [step(say("Done."))] }) });
  try {
    writeFileSync(
      join(root, "tasks.jsonl"),
      Array.from({ length: 5 }, (_, n) => `${JSON.stringify({ id: `t${n}`, input: "x" })}\n`).join(""),
    );
    const where = ["--out", out, "--model", "stand-in", "--model-base-url", model.captureBaseUrl, "--concurrency", "1"];
    const env = { OPENAI_API_KEY: "k", XDG_STATE_HOME: join(root, "state") };
    const run = (...flags: string[]) => rollcall(["run", join(root, "tasks.jsonl"), ...where, ...flags], { env });
    const written = (name: string): unknown => JSON.parse(readFileSync(join(out, name), "utf8"));

    const stopped = await run("--max-tokens", "1500");
    expect(stopped).toMatchObject({ code: 5 });
    expect(stopped.stderr).toContain("the budget is spent (--max-tokens): nothing more is started");
    expect(stopped.stdout).toMatch(/tasks\s+│ 5, 3 not started \(budget\)/);
    const spent = { max_tokens: 1_500, used: { model_calls: 2, tokens: 2_000 }, stopped_by: "max_tokens" };
    expect(written("summary.json")).toMatchObject({ not_started: 3, missing: 0, by_status: { completed: 2 }, budget: spent });
    expect(written("coverage.json")).toMatchObject({ expected: 5, completed: 2, not_started: 3, missing: 0, reconciled: true });
    expect(model.log.total).toBe(2);

    expect(await run("--max-tokens", "1500")).toMatchObject({ code: 5 });
    expect(model.log.total).toBe(2);

    expect(await run("--max-model-calls", "100", "--max-hours", "1")).toMatchObject({ code: 0 });
    expect(model.log.total).toBe(5);
    expect(written("summary.json")).toMatchObject({
      not_started: 0,
      by_status: { completed: 5 },
      budget: { max_tokens: null, max_model_calls: 100, used: { model_calls: 5, tokens: 5_000 }, stopped_by: null },
    });
  } finally {
    await model.close();
  }
}, 150_000);
