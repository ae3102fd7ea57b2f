// SPDX-License-Identifier: Apache-2.0
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import { resultSchema } from "../../src/contract/result.ts";
import { attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const versions = await codexVersions();

describe.each(versions)("one attempt with Codex $name", ({ codex }) => {
  const dir = suiteDir();
  let model: ModelServer;
  let office: OfficeTools;
  let runner: AttemptRunner;

  beforeAll(async () => {
    [model, office] = [await startModelServer({ apiKey: TEST_KEY }), await startOfficeTools()];
    runner = await attemptRunner(dir, codex);
  });
  afterAll(() => Promise.all([model.close(), office.close()]));

  const activation = (id: string, steps: Parameters<typeof scriptLine>[0]["steps"], more: Record<string, unknown> = {}) => ({
    task_id: { taskset: "t", task_id: id },
    input: `Do the work.\n${scriptLine({ steps })}`,
    model: { name: "stand-in", base_url: model.captureBaseUrl },
    codex: { timeout_seconds: 60 },
    ...more,
  });
  const grant = (session: string, more: Record<string, unknown> = {}) => ({
    type: "mcp",
    name: "office",
    required: true,
    connection: { transport: "streamable_http", url: office.url, headers: { "X-NeMo-Gym-Session-Token": office.mintToken(session, null) } },
    ...more,
  });

  it("runs a session with its own tools to a completed result with its files and observations [R1 R32 R33 R39]", async () => {
    const { result, read } = await runner.outcome(
      activation(
        "happy",
        [
          step(shell("echo first; sleep 0.4; echo total,42 > report.csv; cat in.txt")),
          step(mcp("office", "web_search", { query: "exchange rate" })),
          step(mcp("office", "finish", { reason: "done", paths: ["/workspace/report.csv"] })),
          step(say("All done.")),
        ],
        {
          tool_grants: [grant("s-happy")],
          required_tools: ["finish"],
          sandbox: { files: [{ path: "in.txt", content: "hello" }] },
        },
      ),
    );
    expect(result?.failure).toBeNull();
    expect(resultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({
      status: "completed",
      capture_key: "happy",
      cause_class: null,
      evidence: { tools_called: { finish: 1, web_search: 1 } },
    });
    const names = result?.response?.output.flatMap((item) => (item.type === "function_call" ? [item.name] : []));
    expect(names).toEqual(["exec_command", "web_search", "finish"]);
    const observed = result?.observations.records.flatMap((record) => (record.kind === "tool_call" ? [record.tool_name] : []));
    expect(observed).toEqual(names);
    expect(office.calls.filter((call) => call.session_id === "s-happy").map((call) => call.tool)).toEqual(["web_search", "finish"]);
    expect(model.log.countOf("happy")).toBe(4);
    expect(await read("outputs/report.csv")).toBe("total,42\n");
    expect(result?.artifacts.map(({ path }) => path).sort()).toEqual([
      "config.toml",
      "events.jsonl",
      "outputs/report.csv",
      "stderr.log",
      "transcript.jsonl",
    ]);
  });

  it("fails before the first model call when a required server is down, and says why once in each place [R8 R9 R10 R20 R21 R43 R52]", async () => {
    const down = await startBrokenServer("refuses");
    const { result, attempt } = await runner.outcome(
      activation("down", [step(say("never"))], {
        max_attempts: 1,
        tool_grants: [
          grant("s-down", {
            connection: { transport: "streamable_http", url: down.url, headers: { Authorization: "Bearer TOKEN-down-0123456789" } },
          }),
        ],
      }),
    );
    expect(model.log.countOf("down")).toBe(0);
    expect(result).toMatchObject({
      status: "failed",
      response: null,
      cause_class: "grant",
      failure: {
        failure_kind: "agent_run_error",
        cause_code: "mcp_server_unreachable",
        server_names: ["office"],
        status_code: 502,
        terminal: false,
      },
    });
    expect(result?.failure?.failure_reason).toContain("required MCP servers failed to initialize: office");
    const gaps = result?.observations.gaps.filter((gap) => gap.code === "agent_startup_failed");
    expect(gaps?.map((gap) => gap.detail)).toEqual([result?.failure?.failure_reason]);
    expect(attempt.observations).toEqual(result?.observations);
    expect(resultSchema.parse(result)).toEqual(result);
  });
});
