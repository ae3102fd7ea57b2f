// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import TOML from "@iarna/toml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import { readSkills } from "../../src/codex/skills.ts";
import { attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const versions = await codexVersions();

describe.each(versions)("the options of real Codex $name", ({ codex }) => {
  const dir = suiteDir();
  let model: ModelServer;
  let runner: AttemptRunner;

  beforeAll(async () => {
    model = await startModelServer({ apiKey: TEST_KEY });
    for (const name of ["figures", "letters"]) {
      mkdirSync(join(dir, "skills", name), { recursive: true });
      writeFileSync(join(dir, "skills", name, "SKILL.md"), `---\nname: ${name}\ndescription: How we do ${name} here.\n---\nCount twice.\n`);
    }
    writeFileSync(join(dir, "skills/figures/count.sh"), "echo counted\n", { mode: 0o755 });
    runner = await attemptRunner(dir, codex, { skills: await readSkills(join(dir, "skills")) });
  });
  afterAll(() => model.close());

  const activation = (id: string, steps: Parameters<typeof scriptLine>[0]["steps"], options: Record<string, unknown>) => ({
    task_id: { taskset: "t", task_id: id },
    input: `Do the work.\n${scriptLine({ steps })}`,
    model: { name: "stand-in", base_url: model.captureBaseUrl },
    codex: { timeout_seconds: 60, ...options },
  });

  // 0.144.4 sends the effort only to models that it knows, or is told of; 0.171.0 knows no such key and always sends it.
  const reasons = codex.version === "0.144.4" ? { model_supports_reasoning_summaries: true } : {};

  it("are all in config.toml, are taken strictly, and show in what the model is asked", async () => {
    const look = "cd /home/agent/.codex/skills/figures && stat -c %a SKILL.md count.sh && ./count.sh; ls ..";
    const { result, read } = await runner.outcome(
      activation("options", [step(shell(look)), step(say("done"))], {
        model_context_window: 100_000,
        model_auto_compact_token_limit: 90_000,
        reasoning_effort: "high",
        skills: ["figures"],
        extra_config: {
          ...reasons,
          model_reasoning_summary: "detailed",
          features: { unified_exec: true },
          include_environment_context: false,
        },
      }),
    );
    expect(result).toMatchObject({ status: "completed", failure: null });
    expect(TOML.parse(await read("config.toml"))).toMatchObject({
      model_context_window: 100_000,
      model_auto_compact_token_limit: 90_000,
      model_reasoning_effort: "high",
      model_reasoning_summary: "detailed",
      features: { unified_exec: true, plugins: false, goals: false },
    });
    const asked = model.log.requests("options"); // by the capture key in the model's address
    const text = JSON.stringify(asked.map(({ request }) => request?.body));
    expect(text).toContain("figures: How we do figures here.");
    expect(text).not.toContain("How we do letters here.");
    expect(text).not.toContain("<environment_context>"); // as extra_config says
    expect(asked[0]?.request?.body).toMatchObject({ reasoning: { effort: "high", summary: "detailed" } });
    const output = result?.response?.output.find((item) => item.type === "function_call_output")?.output;
    expect(output).toMatch(/^444\n555\ncounted\nfigures\n/);
  });

  it("offer all of the worker's skills when the activation names none, and the usual context", async () => {
    const { result } = await runner.outcome(activation("all-skills", [step(say("done"))], {}));
    expect(result).toMatchObject({ status: "completed" });
    const text = JSON.stringify(model.log.requests("all-skills").map(({ request }) => request?.body));
    for (const part of ["figures: How we do", "letters: How we do", "<environment_context>"]) expect(text).toContain(part);
  });

  // A dot in a name is no way into a table of Rollcall's.
  it.each(["no_such_key", "features.memories"])(
    "that Codex does not know end the session before any model call, by name: %s",
    async (key) => {
      const id = `unknown-${key}`;
      const { result } = await runner.outcome(activation(id, [step(say("done"))], { extra_config: { [key]: true } }));
      expect(result).toMatchObject({ status: "failed", failure: { cause_code: "config_invalid", terminal: true } });
      expect(result?.failure?.failure_reason).toContain(`unknown configuration field \`${key}\``);
      expect(model.log.requests(id)).toEqual([]);
    },
  );

  it("that name a skill the worker has not end it before Codex starts, with those that it has", async () => {
    const { result } = await runner.outcome(activation("no-skill", [step(say("done"))], { skills: ["figures", "cooking"] }));
    expect(result).toMatchObject({ status: "failed", failure: { cause_code: "config_invalid", terminal: true } });
    expect(result?.failure?.failure_reason).toBe("this worker has no skill called cooking; it has figures, letters (skills_dir)");
  });
});
