// SPDX-License-Identifier: Apache-2.0
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step, withFault, type Step } from "../../examples/stand-ins/script.ts";
import type { ObservationRecord, ToolCallRecord } from "../../src/contract/observation.ts";
import { resultSchema, type ActivationResult } from "../../src/contract/result.ts";
import { attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const versions = await codexVersions();
const dir = suiteDir();
let model: ModelServer;
let office: OfficeTools;
/** `finish` takes 3 s; replies are plain JSON, for which 0.144.4 lets the next call wait. */
let slowOffice: OfficeTools;

beforeAll(async () => {
  model = await startModelServer({ apiKey: TEST_KEY });
  office = await startOfficeTools();
  slowOffice = await startOfficeTools({ delayMs: (tool) => (tool === "finish" ? 3_000 : 0) });
});
afterAll(() => Promise.all([model.close(), office.close(), slowOffice.close()]));

const finish = (...paths: string[]) => mcp("office", "finish", { reason: "done", paths });

function grantOf(tools: OfficeTools, session: string): Record<string, unknown> {
  const headers = { "X-NeMo-Gym-Session-Token": tools.mintToken(session, null), Authorization: "Bearer of-no-use-but-saves-probes" };
  return { type: "mcp", name: "office", required: true, connection: { transport: "streamable_http", url: tools.url, headers } };
}

const calls = (result: ActivationResult): ToolCallRecord[] => result.observations.records.filter((record) => record.kind === "tool_call");
const invocation = (result: ActivationResult): Extract<ObservationRecord, { kind: "agent_invocation" }> | undefined =>
  result.observations.records.find((record) => record.kind === "agent_invocation");
const codes = (result: ActivationResult): string[] => result.observations.gaps.map(({ code }) => code);

describe.each(versions)("what is observed of a session of Codex $name", ({ name, codex }) => {
  let runner: AttemptRunner;
  beforeAll(async () => {
    runner = await attemptRunner(`${dir}/${name}`, codex);
  });

  async function run(task: string, steps: Step[], more: Record<string, unknown> = {}, tools = office): Promise<ActivationResult> {
    const id = `${task}-${name.replaceAll(".", "_")}`;
    const { result } = await runner.outcome({
      task_id: { taskset: "t", task_id: id },
      input: `Do the work.\n${scriptLine({ steps })}`,
      model: { name: "stand-in", base_url: model.captureBaseUrl },
      max_attempts: 1,
      tool_grants: [grantOf(tools, id)],
      required_tools: ["finish"],
      ...more,
    });
    if (result === null) throw new Error("it would be retried");
    expect(resultSchema.parse(result)).toEqual(result);
    return result;
  }

  it("has the model's own call ids, whole outputs, and response ids where Codex writes them [R32 R33]", async () => {
    const result = await run("whole", [step(shell("echo first; sleep 0.8; echo last")), step(finish("a.txt")), step(say("bye"))]);
    const [slow, handedIn] = calls(result);
    expect(slow).toMatchObject({ tool_name: "exec_command", status: "completed", tool_call_id: expect.stringMatching(/^call_s0_/) });
    expect(handedIn).toMatchObject({ tool_name: "finish", server_name: "office", tool_call_id: expect.stringMatching(/^call_s1_/) });
    const outputs = result.response?.output.filter((item) => item.type === "function_call_output");
    expect(outputs?.map(({ call_id }) => call_id)).toEqual([slow?.tool_call_id, handedIn?.tool_call_id]);
    expect(outputs?.[0]?.output).toBe("first\nlast\n");
    expect(invocation(result)?.conversation).toEqual(result.response?.output);

    const named = invocation(result)?.model_calls ?? [];
    expect(named.filter(({ response_id }) => response_id?.startsWith("resp_"))).toHaveLength(name === "0.144.4" ? 0 : 3);
    expect(codes(result).includes("model_call_join_key_unavailable")).toBe(name === "0.144.4");
    for (const code of ["transcript_disagrees", "tool_outcome_unavailable", "compaction_observations_unavailable"]) {
      expect(codes(result)).not.toContain(code);
    }
    expect(result).toMatchObject({ status: "completed", cause_class: null, evidence: { required_tools_missing: [] } });
  });

  it("has each compaction with its time", async () => {
    const heavy = (command: string): Step => ({ ...step(shell(command)), usage: { input_tokens: 90_000 } });
    const result = await run("compacted", [heavy("echo 1"), step(finish()), step(say("bye"))], {
      codex: { model_context_window: 100_000, model_auto_compact_token_limit: 80_000 },
    });
    const compactions = result.observations.records.filter(({ kind }) => kind === "context_compaction");
    expect(compactions.length).toBeGreaterThan(0);
    expect(compactions[0]).toMatchObject({ at: expect.stringMatching(/Z$/) });
  });

  it("says that a required tool was not called, as the agent's doing, of a session that is completed all the same", async () => {
    const result = await run("forgot", [step(say("I am done"))]);
    expect(result).toMatchObject({ status: "completed", failure: null, cause_class: "agent" });
    expect(result.evidence?.required_tools_missing).toEqual(["finish"]);
    expect(invocation(result)).toMatchObject({ status: "completed", error_type: "required_tool_not_called" });
  });

  it("keeps what was handed in before the wall clock as a submission, marked late", async () => {
    const steps = [step(shell("echo report > report.txt")), step(finish("report.txt")), withFault(step(say("x")), { kind: "hang" })];
    const result = await run("late", steps, { codex: { timeout_seconds: 6 } });
    expect(result).toMatchObject({ status: "incomplete", incomplete_cause: "wall_clock", cause_class: "limit" });
    expect(result.observations.gaps).toContainEqual(expect.objectContaining({ code: "submission_late", detail: "finish" }));
    expect(result.artifacts.filter(({ kind }) => kind === "submission").map(({ source }) => source)).toEqual(["/workspace/report.txt"]);
    expect(result.evidence?.required_tools_missing).toEqual([]);
  });

  it("counts a model that never answered against the model server, not as the agent reaching its limit", async () => {
    const result = await run("mute", [withFault(step(say("x")), { kind: "hang" })], { codex: { timeout_seconds: 3 } });
    expect(result).toMatchObject({ status: "incomplete", incomplete_cause: "wall_clock", cause_class: "model_provider" });
    expect(result.evidence).toMatchObject({ turn_started: true, model_answered: false });
    expect(result.evidence?.elapsed_ms).toBeGreaterThanOrEqual(3_000);
    expect(codes(result)).not.toContain("submission_late");
  });

  it("shows a call that the model gave up on as timed out, though its server served it, and never as not called [B10 R40]", async () => {
    const steps = [step(finish("a.txt")), step(mcp("office", "web_search", { query: "q" })), step(say("bye"))];
    const result = await run("gave-up", steps, { codex: { mcp_tool_timeout_seconds: 1 } }, slowOffice);
    const session = `gave-up-${name.replaceAll(".", "_")}`;
    const [timedOut, next] = calls(result);
    expect(timedOut).toMatchObject({ tool_name: "finish", status: "timeout", error_type: "timeout" });
    expect(timedOut?.duration_ms).toBeLessThan(2_900);
    const told = result.response?.output.find((item) => item.type === "function_call_output");
    expect(told?.type === "function_call_output" ? told.output : "").toContain("timed out awaiting tools/call");
    // 0.144.4 sends the next call to that server only when the first has returned; its time-out runs meanwhile.
    expect(next).toMatchObject({ tool_name: "web_search", status: name === "0.144.4" ? "timeout" : "completed" });
    await expect
      .poll(() => slowOffice.calls.filter((call) => call.session_id === session && call.tool === "finish"), { timeout: 10_000 })
      .toEqual([expect.objectContaining({ outcome: "ok" })]);
    expect(result.evidence).toMatchObject({ required_tools_missing: [] });
    expect(result.evidence?.tools_called).not.toHaveProperty("finish");
    expect(result).toMatchObject({ status: "completed", cause_class: null });
    expect(model.log.requests(session).length).toBe(3);
  });
});
