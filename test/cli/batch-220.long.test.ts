// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { tasks } from "../../examples/stand-ins/office-tasks.ts";
import { startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { say, scriptLine, shell, step, withFault } from "../../examples/stand-ins/script.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

const KEY = "stand-in-key-220";

it("220 tasks end in exactly one result each: 217 hand in and complete, one does not hand in, one at its wall clock, one that killed itself [R45]", async () => {
  const root = tempDir();
  const out = join(root, "out");
  const [model, office] = [await startModelServer({ apiKey: KEY, replyDelayMs: 20 }), await startOfficeTools()];
  try {
    const servers = { mcpUrl: office.url, mintToken: (session: string) => office.mintToken(session) };
    const rows: object[] = tasks(217, { modelCalls: 2, servers });
    const odd = (id: string, steps: Parameters<typeof scriptLine>[0]["steps"], more: object = {}): object => ({
      task_id: { taskset: "tasks", task_id: id },
      input: `Work.\n${scriptLine({ steps })}`,
      required_tools: ["finish"],
      ...more,
    });
    rows.push(
      odd("no-finish", [step(say("I am done without finish."))]),
      odd("wall-clock", [step(shell("true")), withFault(step(say("late")), { kind: "hang" })], { codex: { timeout_seconds: 5 } }),
      odd("kills-itself", [step(shell("sleep 0.5; kill -9 -1; sleep 5")), step(say("never"))]),
    );
    writeFileSync(join(root, "tasks.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const flags = ["--model", "stand-in", "--model-base-url", model.captureBaseUrl, "--concurrency", "6"];
    const env = { OPENAI_API_KEY: KEY, XDG_STATE_HOME: join(root, "state") };
    const { code } = await rollcall(["run", join(root, "tasks.jsonl"), "--out", out, ...flags], { env });
    const results = readFileSync(join(out, "results.jsonl"), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as ActivationResult);
    expect(results).toHaveLength(220);
    expect(new Set(results.map(({ activation_id }) => activation_id)).size).toBe(220);
    const of = (id: string): ActivationResult | undefined => results.find(({ task_id }) => task_id.task_id === id);
    expect(of("no-finish")).toMatchObject({ status: "completed", evidence: { required_tools_missing: ["finish"] } });
    expect(of("wall-clock")).toMatchObject({ status: "incomplete", incomplete_cause: "wall_clock" });
    expect(of("kills-itself")).toMatchObject({ status: "failed", failure: { failure_kind: "kill_shaped" }, attempts: [{}] });
    expect(results.filter(({ status }) => status === "completed")).toHaveLength(218);
    expect(JSON.parse(readFileSync(join(out, "summary.json"), "utf8"))).toMatchObject({
      total: 220,
      missing: 0,
      by_status: { completed: 218, incomplete: 1, failed: 1 },
      sessions_per_tool: { finish: 217 },
    });
    expect(office.calls.filter(({ tool }) => tool === "finish")).toHaveLength(217);
    expect(code).toBe(1);
  } finally {
    await Promise.all([model.close(), office.close()]);
  }
}, 600_000);
