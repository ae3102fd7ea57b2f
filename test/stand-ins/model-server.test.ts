// SPDX-License-Identifier: Apache-2.0
import { expect, onTestFinished, test } from "vitest";
import { startModelServer, type ModelServer, type ModelServerOptions } from "../../examples/stand-ins/model-server.ts";
import { RequestLog } from "../../examples/stand-ins/request-log.ts";
import { applyPatch, collaboration, exec, say, scriptLine, search, spawnAgent, step, withFault } from "../../examples/stand-ins/script.ts";

async function modelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const server = await startModelServer({ replyDelayMs: 0, ...options });
  onTestFinished(() => server.close());
  return server;
}

function ask(url: string, prompt: string, headers: Record<string, string> = {}): Promise<Response> {
  const input = [{ type: "message", role: "user", content: [{ type: "input_text", text: prompt }] }];
  return fetch(`${url}/responses`, { method: "POST", headers, body: JSON.stringify({ model: "stand-in", input }) });
}

test("without its key a request gets 401 and is counted", async () => {
  const model = await modelServer({ apiKey: "right" });
  expect((await ask(model.baseUrl, "hello")).status).toBe(401);
  expect((await ask(model.baseUrl, "hello", { authorization: "Bearer wrong" })).status).toBe(401);
  expect((await ask(model.baseUrl, "hello", { authorization: "Bearer right" })).status).toBe(200);
  expect(model.log.total).toBe(3);
  expect(model.log.requests().map(({ played }) => played)).toEqual(["rejected", "rejected", "reply"]);
});

test("a script that is not one is answered 400 and says what is wrong with it", async () => {
  const model = await modelServer();
  const broken = await ask(model.baseUrl, "SCRIPT: {not json");
  expect([broken.status, await broken.text()]).toEqual([400, expect.stringContaining("not JSON")]);
  const unknown = await ask(model.baseUrl, 'SCRIPT: {"steps":[{"reply":[{"shout":"x"}]}]}');
  expect([unknown.status, await unknown.text()]).toEqual([400, expect.stringContaining("steps[0].reply[0]")]);
});

test("a script chosen by the test comes before the prompt's own", async () => {
  const model = await modelServer({
    scriptFor: (request) => (request.capture_key === "chosen" ? { steps: [step(say("by the test"))] } : undefined),
  });
  const prompt = scriptLine({ steps: [step(say("by the prompt"))] });
  expect(await (await ask(`${model.url}/ng-rollout/chosen/v1`, prompt)).text()).toContain("by the test");
  expect(await (await ask(`${model.url}/ng-rollout/other/v1`, prompt)).text()).toContain("by the prompt");
});

test("a fault strikes as often as it says in each session, and only in the attempt it names", async () => {
  const model = await modelServer();
  const twice = scriptLine({ steps: [withFault(step(say("ok")), { kind: "status", status: 503, times: 2 })] });
  const statuses = async (key: string, prompt: string): Promise<number[]> => {
    const seen = [];
    for (let call = 0; call < 3; call++) seen.push((await ask(`${model.url}/ng-rollout/${key}/v1`, prompt)).status);
    return seen;
  };
  expect(await statuses("one", twice)).toEqual([503, 503, 200]);
  expect(await statuses("two", twice)).toEqual([503, 503, 200]);
  const firstAttempt = scriptLine({ steps: [withFault(step(say("ok")), { kind: "status", status: 500, attempt: 0 })] });
  expect(await statuses("three", firstAttempt)).toEqual([500, 500, 500]);
  expect(await statuses("three-a1", firstAttempt)).toEqual([200, 200, 200]);
});

test("closing the server ends a request that hangs", async () => {
  const model = await startModelServer({ replyDelayMs: 0 });
  const hanging = ask(model.baseUrl, scriptLine({ steps: [withFault(step(), { kind: "hang" })] })).then(
    () => "answered",
    () => "ended",
  );
  await expect.poll(() => model.log.total).toBe(1);
  await model.close();
  expect(await hanging).toBe("ended");
});

test("an answer comes no sooner than the reply delay, which a step may replace", async () => {
  const model = await modelServer({ replyDelayMs: 200 });
  const timed = async (prompt: string): Promise<number> => {
    const started = performance.now();
    await (await ask(model.baseUrl, prompt)).text();
    return performance.now() - started;
  };
  expect(await timed("hello")).toBeGreaterThanOrEqual(195);
  expect(await timed(scriptLine({ steps: [{ ...step(say("slow")), delay_ms: 500 }] }))).toBeGreaterThanOrEqual(495);
});

test("the log counts every request and keeps only the newest", async () => {
  const log = new RequestLog({ maxRequests: 3, maxBytes: 10_000 });
  const model = await modelServer({ log });
  for (let call = 0; call < 5; call++) await ask(`${model.url}/ng-rollout/key-${call % 2}/v1`, `call ${call}`);
  expect([log.total, log.countOf("key-0"), log.countOf("key-1"), log.countOf("none")]).toEqual([5, 3, 2, 0]);
  expect(log.requests().map(({ request }) => request?.prompt)).toEqual(["call 2", "call 3", "call 4"]);
  await ask(model.baseUrl, "x".repeat(20_000));
  expect(log.requests()).toHaveLength(1);
});

/** What a code-mode model of Codex is sent: tools in an item, agents in headers. */
function askLite(url: string, input: object[], headers: Record<string, string>): Promise<Response> {
  return fetch(`${url}/responses`, { method: "POST", headers, body: JSON.stringify({ model: "gpt-6.2-sol", input }) });
}
const user = (text: string): object => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const taskOf = (agent: string, text: string): object => ({
  type: "agent_message",
  content: [
    { type: "input_text", text: `Message Type: NEW_TASK\nTask name: ${agent}\nPayload:\n` },
    { type: "encrypted_content", encrypted_content: text },
  ],
});
const called = (step: number): object => ({ type: "function_call", call_id: `call_s${step}_x`, name: "exec_command", arguments: "{}" });

test("tools that take a text, tool search and namespaces are streamed as Codex reads them", async () => {
  const model = await modelServer();
  const items = [
    exec("text('{{workdir}}')"),
    applyPatch("*** Begin Patch"),
    search("hand in"),
    collaboration("wait_agent", { timeout_ms: 1 }),
  ];
  const text = await (await ask(model.baseUrl, scriptLine({ steps: [step(...items)] }))).text();
  const done = [...text.matchAll(/^data: (.*output_item.done.*)$/gm)].map(
    ([, line]) => (JSON.parse(line!) as { item: Record<string, unknown> }).item,
  );
  expect(done).toMatchObject([
    { type: "custom_tool_call", name: "exec", input: "text('.')", call_id: expect.stringMatching(/^call_s0_/) },
    { type: "custom_tool_call", name: "apply_patch", input: "*** Begin Patch" },
    { type: "tool_search_call", execution: "client", arguments: { query: "hand in" } },
    { type: "function_call", name: "wait_agent", namespace: "collaboration", arguments: '{"timeout_ms":1}' },
  ]);
});

test("a spawned agent plays its own script from the start, whatever of its parent's it was given, and is counted apart", async () => {
  const model = await modelServer();
  const child = {
    steps: [{ ...step(say("first of the child")), usage: { input_tokens: 50_000, cache_write_input_tokens: 7 } }, step(say("second"))],
  };
  const root = { steps: [step(spawnAgent("sub", child)), step(say("root again"))] };
  const url = `${model.url}/ng-rollout/t1/v1`;
  const parent = { "session-id": "root", "thread-id": "root" };
  const first = await (await askLite(url, [user(scriptLine(root))], parent)).text();
  const message = (JSON.parse(/"arguments":("(?:[^"\\]|\\.)*")/.exec(first)![1]!) as string).replace(/^.*"message":/s, "");
  const told = taskOf("/root/sub", (JSON.parse(`{"message":${message}`) as { message: string }).message);
  const own = { ...parent, "thread-id": "child", "x-codex-parent-thread-id": "root", "x-openai-subagent": "collab_spawn" };
  const forked = [user(scriptLine(root)), called(0), told];
  expect(await (await askLite(url, forked, own)).text()).toContain("first of the child");
  expect(await (await askLite(url, [...forked, called(0)], own)).text()).toContain("second");
  expect(await (await askLite(url, [user(scriptLine(root)), called(0)], parent)).text()).toContain("root again");

  const threads = model.log.threadsOf("t1");
  expect(threads).toMatchObject([
    { thread_id: "root", parent_thread_id: null, answered: 2, usage: { input_tokens: 2_000, cache_write_input_tokens: 0 } },
    { thread_id: "child", parent_thread_id: "root", answered: 2, usage: { input_tokens: 51_000, cache_write_input_tokens: 7 } },
  ]);
  expect(new Set(threads.flatMap(({ response_ids }) => response_ids)).size).toBe(4);
  expect(first).toContain(threads[0]!.response_ids[0]);
});

test("only whole answers are counted, summaries among them, and what was offered is read from wherever Codex puts it", async () => {
  const model = await modelServer();
  const prompt = scriptLine({ steps: [withFault(step(say("ok")), { kind: "cut", times: 1 })] });
  const halfway = scriptLine({ steps: [withFault(step(), { kind: "incomplete" })] });
  const tools = [
    { type: "namespace", name: "functions", tools: [{ type: "custom", name: "exec" }] },
    { type: "namespace", name: "mcp__office", tools: [{ type: "function", name: "finish" }] },
    { type: "tool_search" },
  ];
  const input = [{ type: "additional_tools", tools }, user(prompt)];
  await (await askLite(model.baseUrl, input, { "thread-id": "t" })).text().catch(() => "cut");
  await (await askLite(model.baseUrl, input, { "thread-id": "t" })).text();
  const kind = JSON.stringify({ request_kind: "compaction" });
  const summary = await askLite(model.baseUrl, input, { "thread-id": "t", "x-codex-turn-metadata": kind });
  expect(await summary.text()).toContain("[steps done: 0]");
  await (await askLite(model.baseUrl, [user(halfway)], { "thread-id": "t" })).text();
  expect(model.log.total).toBe(4);
  expect(model.log.threadsOf("")).toMatchObject([
    {
      answered: 2,
      compactions: 1,
      usage: { input_tokens: 2_000 },
      incomplete: { answered: 1, usage: { input_tokens: 1_000 } },
      offered: ["exec", "mcp__office.finish", "tool_search"],
    },
  ]);
});
