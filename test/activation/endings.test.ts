// SPDX-License-Identifier: Apache-2.0
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step, withFault, type Step } from "../../examples/stand-ins/script.ts";
import { resultSchema, type ActivationResult } from "../../src/contract/result.ts";
import { abortWith, attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const versions = await codexVersions();
const dir = suiteDir();
let model: ModelServer;
let office: OfficeTools;

beforeAll(async () => {
  [model, office] = [await startModelServer({ apiKey: TEST_KEY }), await startOfficeTools()];
});
afterAll(() => Promise.all([model.close(), office.close()]));

function activation(id: string, steps: Step[], more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    task_id: { taskset: "t", task_id: id },
    input: `Do the work.\n${scriptLine({ steps })}`,
    model: { name: "stand-in", base_url: model.captureBaseUrl },
    max_attempts: 1,
    ...more,
  };
}

function gapCodes(result: ActivationResult | null): string[] {
  return result?.observations.gaps.map((gap) => gap.code) ?? [];
}

describe.each(versions)("how an attempt with Codex $name ends", ({ name, codex }) => {
  let runner: AttemptRunner;
  const at = (id: string): string => `${id}-${name.replaceAll(".", "_")}`;
  beforeAll(async () => {
    runner = await attemptRunner(`${dir}/${name}`, codex);
  });

  it("keeps everything seen so far when the wall clock ends a model that never answers, and calls that incomplete", async () => {
    const id = at("wall");
    const { result } = await runner.outcome(
      activation(id, [step(shell("echo seen")), withFault(step(say("late")), { kind: "hang" })], { codex: { timeout_seconds: 15 } }),
    );
    expect(result).toMatchObject({ status: "incomplete", incomplete_cause: "wall_clock", cause_class: "limit", failure: null });
    expect(result?.evidence?.elapsed_ms).toBeGreaterThanOrEqual(15_000);
    expect(result?.response?.output.some((item) => item.type === "function_call_output" && item.output.includes("seen"))).toBe(true);
    expect(gapCodes(result)).not.toContain("agent_startup_failed");
    expect(resultSchema.parse(result)).toEqual(result);
  });

  it("carries no end of stderr and no startup gap when a turn had started [R11]", async () => {
    const id = at("turn-failed");
    const { result } = await runner.outcome(
      activation(id, [withFault(step(say("x")), { kind: "status", status: 400, body: '{"error":{"message":"no such thing"}}' })]),
    );
    expect(result).toMatchObject({ status: "failed", failure: { cause_code: "turn_failed", status_code: 502 } });
    expect(result?.failure?.failure_reason).toContain("no such thing");
    expect(result?.failure?.failure_reason).not.toContain("ERROR codex");
    expect(gapCodes(result)).not.toContain("agent_startup_failed");
  });

  it("recovers from a stream that was cut once and records that the usage is partial [A7]", async () => {
    const { result } = await runner.outcome(activation(at("cut"), [withFault(step(say("whole after all")), { kind: "cut", times: 1 })]));
    expect(result?.status).toBe("completed");
    expect(gapCodes(result)).toContain("partial_model_usage_unavailable");
  });

  it("goes on without an optional server that does not connect, also when nobody looked before [R37]", async () => {
    const down = await startBrokenServer("refuses");
    const id = at("optional-down");
    const { result } = await runner.outcome(
      activation(id, [step(say("worked without it"))], {
        tool_grants: [
          {
            type: "mcp",
            name: "extra",
            required: false,
            preflight: false,
            connection: { transport: "streamable_http", url: down.url, headers: { Authorization: "Bearer x-optional-token" } },
          },
        ],
      }),
    );
    expect(result?.status).toBe("completed");
    expect(model.log.countOf(id)).toBe(1);
    const gap = result?.observations.gaps.find(({ code }) => code === "mcp_server_unavailable");
    expect(JSON.parse(gap?.detail ?? "{}")).toMatchObject({
      server_name: "extra",
      reason: expect.stringContaining("error sending request"),
    });
    expect(JSON.stringify(result)).not.toContain("x-optional-token");
    expect(gapCodes(result)).not.toContain("agent_startup_failed");
  });

  it("shows the model the granted tools under mcp__<server> with the resource helpers [R38]", async () => {
    const id = at("tools");
    const grant = {
      type: "mcp",
      name: "office",
      required: true,
      connection: { transport: "streamable_http", url: office.url, headers: { "X-NeMo-Gym-Session-Token": office.mintToken(id, null) } },
    };
    await runner.outcome(activation(id, [step(say("ok"))], { tool_grants: [grant] }));
    const tools = model.log.requests(id).at(-1)?.request?.body.tools ?? [];
    expect(tools.map((tool) => tool["name"])).toEqual(
      expect.arrayContaining(["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource", "mcp__office"]),
    );
    const offered = tools.find((tool) => tool["name"] === "mcp__office")?.["tools"] as { name: string }[] | undefined;
    expect(offered?.map((tool) => tool.name)).toContain("finish");
  });

  it("refuses to launch without a model key, naming the variable", async () => {
    const id = at("no-key");
    const { result } = await runner.outcome(
      activation(id, [step(say("x"))], { model: { name: "m", base_url: model.captureBaseUrl, api_key_env: "UNSET_KEY" } }),
    );
    expect(result).toMatchObject({
      status: "failed",
      failure: { cause_code: "model_key_missing", terminal: true, stage: "admission" },
      evidence: null,
    });
    expect(result?.failure?.failure_reason).toContain("UNSET_KEY");
    expect(gapCodes(result)).toEqual(["harness_not_run"]);
    expect(model.log.countOf(id)).toBe(0);
  });

  it("ends a running session as cancelled with what was seen, and hands one back uncharged at shutdown", async () => {
    const hanging = (id: string): Record<string, unknown> =>
      activation(id, [step(shell("echo before")), withFault(step(say("x")), { kind: "hang" })]);
    for (const [id, kind] of [
      [at("cancel"), "cancelled"],
      [at("shutdown"), "shutdown"],
    ] as const) {
      const controller = new AbortController();
      const running = runner.outcome(hanging(id), { signal: controller.signal });
      await vi.waitFor(() => expect(model.log.countOf(id)).toBe(2), { timeout: 30_000 });
      abortWith(
        controller,
        kind === "cancelled" ? { kind, mark: { by: "a test", at: new Date().toISOString(), reason: "why not" } } : { kind },
      );
      const { end, attempt, result } = await running;
      if (kind === "cancelled") {
        expect(result).toMatchObject({
          status: "cancelled",
          failure: { failure_kind: "cancelled", status_code: 409, failure_reason: "cancelled by a test: why not" },
        });
        expect(result?.response).toMatchObject({ status: "incomplete" });
        expect(JSON.stringify(result?.response?.output)).toContain("before");
        expect(JSON.stringify(result?.observations.records)).toContain("before");
        expect(attempt.charged).toBe(true);
      } else {
        expect(end).toEqual({ kind: "handed_back", reason: "shutdown" });
        expect(attempt).toMatchObject({ charged: false, failure: { failure_kind: "shutdown" } });
      }
      expect(attempt.observations.gaps.map((gap) => gap.code)).toContain("agent_activation_interrupted");
    }
  });

  it("offers another attempt after a retryable failure while charged attempts are left, and none after the last", async () => {
    const down = await startBrokenServer("refuses");
    const grant = {
      type: "mcp",
      name: "office",
      required: true,
      connection: { transport: "streamable_http", url: down.url, headers: { Authorization: "Bearer a-token-of-no-use" } },
    };
    const raw = activation(at("again"), [step(say("x"))], { max_attempts: 2, tool_grants: [grant] });
    const first = await runner.outcome(raw, { attempt: 0, charged: 0 });
    expect(first.end).toMatchObject({ kind: "retry", attempt: { attempt: 0, charged: true, status: "failed" } });
    const second = await runner.outcome(raw, { attempt: 1, charged: 1 });
    expect(second.result).toMatchObject({ status: "failed", capture_key: `${at("again")}-a1`, attempts: [{ attempt: 0 }, { attempt: 1 }] });
  });
});

describe("tokens", () => {
  it("give a session only its own episode's tools [R41]", async () => {
    const runner = await attemptRunner(`${dir}/tokens`, versions[0]!.codex);
    const session = (id: string, token: string): Promise<{ result: ActivationResult | null }> =>
      runner.outcome(
        activation(
          id,
          [step(mcp("office", "web_search", { query: "q" })), step(mcp("office", "finish", { reason: "r", paths: [] })), step(say("end"))],
          {
            tool_grants: [
              {
                type: "mcp",
                name: "office",
                required: true,
                connection: { transport: "streamable_http", url: office.url, headers: { "X-NeMo-Gym-Session-Token": token } },
              },
            ],
          },
        ),
      );
    const limited = await session("limited", office.mintToken("s-limited", ["web_search"]));
    expect(limited.result?.evidence?.tools_called).toEqual({ web_search: 1 });
    const forged = await session("forged", `${office.mintToken("s-forged", null).slice(0, -4)}AAAA`);
    expect(forged.result?.evidence?.tools_called).toEqual({});
    expect(office.calls.filter((call) => call.session_id === "s-limited").map((call) => [call.tool, call.outcome])).toEqual([
      ["web_search", "ok"],
      ["finish", "refused"],
    ]);
    expect(office.calls.some((call) => call.session_id === "s-forged")).toBe(false);
  });
});
