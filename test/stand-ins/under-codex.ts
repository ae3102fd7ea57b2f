// SPDX-License-Identifier: Apache-2.0
import { describe, expect, onTestFinished, test } from "vitest";
import { startModelServer, type ModelServer, type ModelServerOptions } from "../../examples/stand-ins/model-server.ts";
import { startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import {
  applyPatch,
  collaboration,
  exec,
  mcp,
  reasoning,
  say,
  scriptLine,
  search,
  shell,
  spawnAgent,
  step,
  withFault,
  type Script,
} from "../../examples/stand-ins/script.ts";
import type { CodexBinary } from "../../src/codex/binary.ts";
import { runCodex, type CodexEvent } from "./codex-session.ts";

const KEY = "model-key-for-tests";
const HUGE = { input_tokens: 50_000, cached_input_tokens: 5_000, output_tokens: 500, reasoning_output_tokens: 50 };

async function modelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const server = await startModelServer({ apiKey: KEY, ...options });
  onTestFinished(() => server.close());
  return server;
}

async function officeTools(): Promise<OfficeTools> {
  const tools = await startOfficeTools();
  onTestFinished(() => tools.close());
  return tools;
}

const items = (events: CodexEvent[], type: string) =>
  events.flatMap((event) => (event.type === "item.completed" && event.item?.type === type ? [event.item] : []));

const steps = (model: ModelServer, captureKey: string) =>
  model.log.requests(captureKey).map(({ request, played }) => [request?.step, played]);

function prompt(script: Script): string {
  return `Please write the report.\n${scriptLine(script)}\nThank you.`;
}

/** What our stand-ins promise, asked by a real Codex. */
export function standInsUnder({ name, codex }: { name: string; codex: CodexBinary }): void {
  describe(`Codex ${name}`, () => {
    test("a session with shell, search and finish ends completed, its calls recorded under the session of its token", async () => {
      const [model, tools] = [await modelServer(), await officeTools()];
      const run = await runCodex(codex, {
        baseUrl: model.captureBaseUrl.replace("{capture_key}", "task-1-a2"),
        apiKey: KEY,
        servers: { "office-tools": { url: tools.url, token: tools.mintToken("session-1") } },
        prompt: prompt({
          steps: [
            step(reasoning("First the rates"), mcp("office-tools", "web_search", { query: "VAT rates" }), shell("echo begun > report.txt")),
            step(shell("cat report.txt")),
            step(mcp("office-tools", "finish", { reason: "written", paths: ["{{workdir}}/report.txt"] })),
            step(say("The report is done.")),
          ],
        }),
      });

      expect(run.exitCode).toBe(0);
      expect(run.events.at(-1)?.type).toBe("turn.completed");
      expect(run.events.at(-1)?.usage).toMatchObject({ input_tokens: 4_000, output_tokens: 240 });
      expect(items(run.events, "reasoning").map(({ text }) => text)).toEqual(["First the rates"]);
      expect(items(run.events, "command_execution").map((item) => item.aggregated_output)).toEqual(["", "begun\n"]);
      expect(items(run.events, "agent_message").map(({ text }) => text)).toEqual(["The report is done."]);
      expect(tools.calls.map(({ session_id, tool, outcome }) => [session_id, tool, outcome])).toEqual([
        ["session-1", "web_search", "ok"],
        ["session-1", "finish", "ok"],
      ]);
      expect(tools.calls[1]?.args).toEqual({ reason: "written", paths: [`${run.workdir}/report.txt`] });

      expect(model.log.countOf("task-1-a2")).toBe(4);
      const seen = model.log.requests("task-1-a2").map(({ request }) => request);
      expect(seen.map((request) => request?.step)).toEqual([0, 1, 2, 3]);
      expect(seen.map((request) => request?.attempt)).toEqual([2, 2, 2, 2]);
      expect(tools.calls[0]?.thread_id).toBe(seen[0]?.thread_id);
      expect(JSON.stringify(seen[0]?.body.tools)).toContain("abandon_task_finish");
    });

    test("a stream that is cut once is asked for again, and the step is neither lost nor played twice", async () => {
      const model = await modelServer();
      const run = await runCodex(codex, {
        baseUrl: model.captureBaseUrl.replace("{capture_key}", "cut"),
        apiKey: KEY,
        prompt: prompt({
          steps: [
            step(shell("echo one >> steps.txt")),
            withFault(step(shell("echo two >> steps.txt")), { kind: "cut", times: 1 }),
            step(shell("cat steps.txt")),
          ],
        }),
      });

      expect(run.exitCode).toBe(0);
      expect(run.events.map(({ type }) => type)).toContain("error");
      expect(items(run.events, "command_execution").at(-1)?.aggregated_output).toBe("one\ntwo\n");
      expect(steps(model, "cut")).toEqual([
        [0, "reply"],
        [1, "cut"],
        [1, "reply"],
        [2, "reply"],
        [3, "reply"],
      ]);
    });

    test("a call that came whole before the cut is run once, and the script goes on behind it", async () => {
      const model = await modelServer();
      const append = shell("echo x >> steps.txt");
      const run = await runCodex(codex, {
        baseUrl: model.captureBaseUrl.replace("{capture_key}", "late-cut"),
        apiKey: KEY,
        prompt: prompt({ steps: [withFault(step(append), { kind: "cut", after: [append] }), step(shell("cat steps.txt"))] }),
      });

      expect(run.exitCode).toBe(0);
      expect(items(run.events, "command_execution").at(-1)?.aggregated_output).toBe("x\n");
      expect(steps(model, "late-cut")).toEqual([
        [0, "cut"],
        [1, "reply"],
        [2, "reply"],
      ]);
    });

    test("a conversation that Codex sums up goes on at the same step", async () => {
      const model = await modelServer();
      const full = { ...step(shell("echo 2")), usage: { input_tokens: 10_000 } };
      const run = await runCodex(codex, {
        baseUrl: model.captureBaseUrl.replace("{capture_key}", "long"),
        apiKey: KEY,
        settings: "model_auto_compact_token_limit = 9000",
        prompt: prompt({ steps: [step(shell("echo 1")), full, step(shell("echo 3")), step(say("counted"))] }),
      });

      expect(items(run.events, "command_execution").map((item) => item.aggregated_output)).toEqual(["1\n", "2\n", "3\n"]);
      expect(items(run.events, "agent_message").map(({ text }) => text)).toEqual(["counted"]);
      expect(model.log.requests("long").filter(({ request }) => request?.compaction)).toHaveLength(1);
    });

    test("a code-mode model runs JavaScript and an agent of its own, whose calls are counted under its thread", async () => {
      const [model, tools] = [await modelServer(), await officeTools()];
      const child = {
        steps: [
          { ...step(exec(`text((await tools.mcp__office__finish({reason: "by the agent", paths: []})).content[0].text)`)), usage: HUGE },
          { ...step(say("The agent is done.")), usage: HUGE },
        ],
      };
      const run = await runCodex(codex, {
        baseUrl: model.captureBaseUrl.replace("{capture_key}", "agents"),
        apiKey: KEY,
        model: "gpt-5.6-sol", // both versions know it as code mode with agents
        servers: { office: { url: tools.url, token: tools.mintToken("session-2") } },
        prompt: prompt({
          steps: [
            step(exec(`text(await tools.apply_patch("*** Begin Patch\\n*** Add File: made.txt\\n+made\\n*** End Patch\\n"))`)),
            step(exec(`text((await tools.exec_command({cmd: "cat made.txt"})).output)`)),
            step(spawnAgent("sub_one", child)),
            step(collaboration("wait_agent", { timeout_ms: 30_000 })),
            step(say("All is done.")),
          ],
        }),
      });

      expect(run.exitCode).toBe(0);
      expect(items(run.events, "command_execution").map((item) => item.aggregated_output)).toEqual(["made\n"]);
      expect(items(run.events, "agent_message").map(({ text }) => text)).toEqual(["All is done."]);
      const [root, agent, ...more] = model.log.threadsOf("agents");
      expect([root, agent, more]).toMatchObject([
        { parent_thread_id: null, answered: 5, usage: { input_tokens: 5_000 } },
        { parent_thread_id: root!.thread_id, answered: 2, usage: { input_tokens: 100_000 } },
        [],
      ]);
      expect(root!.offered).toEqual(expect.arrayContaining(["exec", "wait", "collaboration.spawn_agent"]));
      expect(tools.calls.map(({ tool, thread_id }) => [tool, thread_id])).toEqual([["finish", agent!.thread_id]]);
    });

    test("a model that searches its tools and writes patches does both", async () => {
      const [model, tools] = [await modelServer(), await officeTools()];
      const run = await runCodex(codex, {
        baseUrl: model.captureBaseUrl.replace("{capture_key}", "searches"),
        apiKey: KEY,
        model: "gpt-5.5",
        servers: { office: { url: tools.url, token: tools.mintToken("session-3") } },
        prompt: prompt({
          steps: [
            step(search("hand the work in")),
            step(applyPatch("*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n")),
            step(mcp("office", "finish", { reason: "found", paths: ["{{workdir}}/made.txt"] })),
          ],
        }),
      });

      expect(run.exitCode).toBe(0);
      expect(items(run.events, "file_change")).toHaveLength(1);
      expect(tools.calls.map(({ tool, outcome }) => [tool, outcome])).toEqual([["finish", "ok"]]);
      const sent = JSON.stringify(model.log.requests("searches").at(-1)?.request?.body.input);
      expect(sent).toContain("tool_search_output");
      expect(model.log.threadsOf("searches")).toMatchObject([{ answered: 4 }]);
    });

    test.each<[string, Parameters<typeof withFault>[1], string]>([
      ["an output limit", { kind: "incomplete", after: [say("half of it")] }, "Incomplete response returned, reason: max_output_tokens"],
      ["a failed response", { kind: "failed", code: "server_error", message: "model exploded" }, "model exploded"],
      ["an HTTP error", { kind: "status", status: 400, body: '{"error":{"message":"no such thing"}}' }, "no such thing"],
    ])("%s ends the turn with its own message", async (_name, fault, message) => {
      const model = await modelServer();
      const run = await runCodex(codex, {
        baseUrl: model.baseUrl,
        apiKey: KEY,
        streamRetries: 0,
        prompt: prompt({ steps: [withFault(step(say("whole")), fault)] }),
      });

      expect(run.exitCode).toBe(1);
      expect(run.events.at(-1)?.type).toBe("turn.failed");
      expect(run.events.at(-1)?.error?.message).toContain(message);
    });
  });
}
