// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import { replayAttempt } from "../../src/activation/replay.ts";
import { evidenceLeft } from "../../src/artifacts/evidence.ts";
import { resultSchema, type ActivationResult, type Attempt } from "../../src/contract/result.ts";
import { startAgentsModel, type AgentReply, type AgentsModel } from "../support/agents-model.ts";
import { attemptRunner, codexVersions, type AttemptRunner } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const dir = suiteDir();
let office: OfficeTools;
beforeAll(async () => {
  office = await startOfficeTools();
});
afterAll(() => office.close());

const spawn: AgentReply = [
  { namespace: "collaboration", name: "spawn_agent", args: { task_name: "sub_one", message: "Do it.", fork_turns: "all" } },
];
const wait: AgentReply = [{ namespace: "collaboration", name: "wait_agent", args: { timeout_ms: 30_000 } }];
const js = (script: string): AgentReply => [{ js: script }];

// CODEX_TEST_BIN may be any version: it has no model of these that is known.
describe.each((await codexVersions()).filter(({ codex }) => codex.version === "0.144.4" || codex.version === "0.171.0"))(
  "a session of Codex $name with subagents",
  ({ name, codex }) => {
    const modelName = name === "0.144.4" ? "gpt-5.6-sol" : "gpt-6.2-sol";
    let runner: AttemptRunner;
    beforeAll(async () => {
      runner = await attemptRunner(`${dir}/${name}`, codex);
    });

    interface Ran {
      model: AgentsModel;
      attempt: Attempt;
      result: ActivationResult;
      token: string;
      directory: string;
    }

    async function run(task: string, root: AgentReply[], sub: (token: string) => AgentReply[]): Promise<Ran> {
      const id = `${task}-${name.replaceAll(".", "_")}`;
      const token = office.mintToken(id, null);
      const model = await startAgentsModel({ root, sub: sub(token) });
      onTestFinished(() => model.close());
      const headers = { [SESSION_TOKEN_HEADER]: token };
      const { attempt, result } = await runner.outcome({
        task_id: { taskset: "t", task_id: id },
        input: "Have an agent do it.",
        model: { name: modelName, base_url: model.baseUrl },
        max_attempts: 1,
        codex: { subagents: "on", tools: "catalogue" },
        tool_grants: [
          { type: "mcp", name: "office", required: true, connection: { transport: "streamable_http", url: office.url, headers } },
        ],
        required_tools: ["finish"],
      });
      if (result === null) throw new Error("it would be retried");
      expect(resultSchema.parse(result)).toEqual(result);
      return { model, attempt, result, token, directory: join(runner.store, result.activation_id, "attempt-0") };
    }

    it("counts what its model server served, and sees and collects what a subagent hands in", async () => {
      const { model, attempt, result, token, directory } = await run(
        "hands-in",
        [js('text((await tools.exec_command({cmd: "echo root"})).output)'), spawn, wait, [{ say: "Done." }]],
        (secret) => [
          js('text((await tools.exec_command({cmd: "echo report > report.txt"})).output)'),
          js('text(JSON.stringify(await tools.mcp__office__finish({reason: "done", paths: ["report.txt"]})))'),
          [{ say: `Sub done with ${secret}.` }],
        ],
      );
      const { root, sub } = model.served;
      expect(sub.answered).toBe(3);
      expect(result.status).toBe("completed");
      expect(result.cause_class).toBeNull();
      expect(result.evidence).toMatchObject({ required_tools_missing: [], tools_called: { finish: 1 } });
      const usage = result.usage;
      expect(usage).toMatchObject({
        total_tokens: root.tokens + sub.tokens,
        cache_write_input_tokens: name === "0.144.4" ? null : 30 * (root.answered + sub.answered),
      });
      expect([attempt.usage, result.response?.usage]).toEqual([usage, usage]);

      const { threads = [], model_calls = [] } = result.evidence ?? {};
      expect(threads.map((one) => [one.parent_thread_id, one.model_calls, one.open_model_calls])).toEqual([
        [null, root.answered, 0],
        [threads[0]?.thread_id, sub.answered, 0],
      ]);
      expect(model_calls).toHaveLength(root.answered + sub.answered);

      const child = `${result.capture_key}/${threads[1]?.thread_id}`;
      const { records, gaps } = result.observations;
      const invocations = records.filter((record) => record.kind === "agent_invocation");
      expect(invocations.map(({ invocation_id, parent_invocation_id }) => [invocation_id, parent_invocation_id])).toEqual([
        [result.capture_key, undefined],
        [child, result.capture_key],
      ]);
      expect(invocations[1]).toMatchObject({ status: "completed", spawned_by_tool_call_id: expect.stringMatching(/^call_/) });
      const finish = records.filter((record) => record.kind === "tool_call").find(({ tool_name }) => tool_name === "finish");
      expect(finish).toMatchObject({ invocation_id: child, status: "completed", tool_call_id: expect.stringMatching(/^exec-/) });
      expect(gaps.map(({ code }) => code)).not.toEqual(
        expect.arrayContaining([expect.stringMatching(/transcript_disagrees|subagent_hierarchy_unavailable|model_call_outcome_unknown/)]),
      );

      const submitted = result.artifacts.filter(({ kind }) => kind === "submission").map(({ source }) => source);
      expect(submitted).toEqual(["/workspace/report.txt"]);
      const transcript = `transcripts/${threads[1]?.thread_id}.jsonl`;
      expect(result.artifacts.map(({ path }) => path)).toEqual(expect.arrayContaining(["transcript.jsonl", transcript]));
      const kept = readFileSync(join(directory, transcript), "utf8");
      expect(kept).toContain("Sub done with [redacted].");
      expect(kept + JSON.stringify(result)).not.toContain(token);
      expect(JSON.stringify(invocations[1])).toContain("Sub done with [redacted].");
      expect((await evidenceLeft(runner.ports.store, result.activation_id, 0)).map(({ path }) => path)).toContain(transcript);
      expect((await replayAttempt(directory))?.differences).toEqual([]);
    });

    it("says of one that still waits for its model when the session ends, that a call's outcome is unknown", async () => {
      const { model, attempt, result } = await run("runs-on", [spawn, { whenSubAsked: [{ say: "Done." }] }], () => ["hang"]);
      const { root, sub } = model.served;
      expect(sub).toEqual({ answered: 0, open: 1, tokens: 0 });
      const thread = result.evidence?.threads[1];
      expect(thread).toMatchObject({ model_calls: 0, open_model_calls: 1 });
      expect(result.observations.gaps).toContainEqual({
        code: "model_call_outcome_unknown",
        invocation_id: `${result.capture_key}/${thread?.thread_id}`,
        detail: JSON.stringify({ thread_id: thread?.thread_id, count: 1 }),
      });
      expect(attempt.usage?.total_tokens).toBe(root.tokens);
    });
  },
);
