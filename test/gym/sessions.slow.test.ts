// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step, withFault, type Step } from "../../examples/stand-ins/script.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import { PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import { filesHolding } from "../support/byte-search.ts";
import type { RunningCommand } from "../support/rollcall-command.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { startAgentRig, type AgentRig, type Answer } from "./rig.ts";

// The protocol from seed to close over HTTP: two API processes behind one address, a real Redis, worker and Codex.
const root = suiteDir();
let rig: AgentRig;
let model: ModelServer;
let office: OfficeTools;
const tokens: string[] = [];
const workers: RunningCommand[] = [];

beforeAll(async () => {
  [model, office] = [await startModelServer(), await startOfficeTools()];
  rig = await startAgentRig(
    root,
    `concurrency = 3
[model]
name = "stand-in"
base_url = "${model.captureBaseUrl}"
[codex]
session_close_timeout_seconds = 10
[queue]
lock_duration_ms = 25000
lock_renew_ms = 3000
stalled_interval_ms = 1000
[[tool_grants]]
type = "mcp"
name = "office"
required = true
[tool_grants.connection]
transport = "streamable_http"
url = "http://127.0.0.1:9/mcp"
headers = { Configured = "configured-token-5566" }
`,
  );
  await Promise.all([rig.startApi(), rig.startApi()]);
  workers.push(rig.startWorker());
}, 120_000);
afterAll(async () => {
  await rig.close();
  await Promise.all([model.close(), office.close()]);
});

interface Session {
  id: string;
  key: string;
  episode_id: { rollout_id: string; attempt: number };
  cookie: string;
  /** What it was seeded with. */
  seed: object;
  activate(body: object): Promise<Answer>;
  close(): Promise<Answer>;
}

/** Seeds a session whose grant `office` carries a token of its own. */
async function seeded(name: string, { attempt = 0, url = office.url }: { attempt?: number; url?: string } = {}): Promise<Session> {
  const id = `agent-session-${randomBytes(16).toString("hex")}`;
  const episode_id = { rollout_id: name, attempt };
  const key = attempt === 0 ? name : `${name}-a${attempt}`;
  const headers = { [SESSION_TOKEN_HEADER]: office.mintToken(id), "X-Other": `other"\\ %${randomBytes(8).toString("hex")}` };
  tokens.push(...Object.values(headers));
  const tool_accesses = [{ type: "mcp", name: "office", required: true, connection: { transport: "streamable_http", url, headers } }];
  const seed = { agent_session_id: id, episode_id, task_id: { taskset: "env:office", task_id: name }, tool_accesses };
  const { status, cookie, body } = await rig.post("/v1/agent_sessions", seed);
  expect({ status, body }).toEqual({ status: 200, body: { agent_session_id: id } });
  return {
    id,
    key,
    episode_id,
    cookie: cookie!,
    seed,
    activate: (body) => rig.post(`/ng-rollout/${key}/v1/responses`, body, { cookie: cookie! }),
    close: () => rig.post("/v1/agent_sessions/close", { agent_session_id: id, episode_id }, { cookie: cookie! }),
  };
}

const play = (...steps: Step[]): { input: string } => ({ input: `Do the work.\n${scriptLine({ steps })}` });
const calls = (key: string): number => model.log.countOf(key);

describe("an agent session", () => {
  it("runs once under exactly the seeded capture key with its own grant, answers the same again, and is closed by the process that is left [R7 R44]", async () => {
    const session = await seeded("whole", { attempt: 2 });
    const body = { ...play(step(mcp("office", "finish", { reason: "done", paths: [] })), step(say("Finished."))), metadata: { row: "7" } };
    const [first, joined] = await Promise.all([session.activate(body), session.activate({ ...body, temperature: null })]);
    expect(first, rig.logs()).toMatchObject({
      status: 200,
      body: {
        id: expect.stringMatching(/^resp_[0-9a-f]+$/) as string,
        object: "response",
        status: "completed",
        error: null,
        model: "stand-in",
        metadata: { row: "7", harness_execution: "sandbox", codex_version: PACKAGED_CODEX_VERSION },
      },
    });
    expect(joined.body).toEqual(first.body);
    expect(calls("whole-a2")).toBe(2);
    expect(office.calls.filter(({ session_id }) => session_id === session.id)).toMatchObject([{ tool: "finish", outcome: "ok" }]);
    expect((await session.activate({ ...body, input: "another" })).status).toBe(409);
    expect(await session.activate(body)).toMatchObject({ status: 200, body: first.body });

    const gone = await rig.startApi();
    gone.child.kill("SIGKILL");
    await gone.ended;
    const [one, two] = await Promise.all([session.close(), session.close()]);
    expect(one).toMatchObject({ status: 200, body: { agent_session_id: session.id, resources_cookies: null } });
    expect(one.body["agent_observations"]).toMatchObject({
      source: "codex",
      records: expect.arrayContaining([
        expect.objectContaining({ kind: "agent_invocation", invocation_id: "whole-a2", status: "completed" }),
        expect.objectContaining({ kind: "tool_call", tool_name: "finish" }),
      ]) as unknown,
    });
    expect(two.body).toEqual(one.body);
    expect((await session.activate(body)).status).toBe(409);
  });

  it("is begun by one process, which is then killed, and answered by the other: a caller that is gone ends nothing", async () => {
    const [alive, killed] = [await seeded("caller-gone"), await rig.startApi()];
    const body = play(step(shell("sleep 2")), step(say("Slow, but there.")));
    const hangUp = new AbortController();
    // One of three goes to each process, so one of them is cut off by its process' death and one by its caller.
    const lost = [0, 1, 2].map(() =>
      rig
        .post(`/ng-rollout/${alive.key}/v1/responses`, body, { cookie: alive.cookie, signal: hangUp.signal })
        .catch((error: unknown) => error),
    );
    await vi.waitFor(() => expect(calls("caller-gone")).toBeGreaterThan(0), { timeout: 60_000 });
    killed.child.kill("SIGKILL");
    hangUp.abort();
    for (const one of await Promise.all(lost)) expect(one, JSON.stringify(one)).toBeInstanceOf(Error);
    expect(await alive.activate(body)).toMatchObject({ status: 200, body: { status: "completed" } });
    expect(calls("caller-gone")).toBe(2);
    await alive.close();
  });

  it("that cannot start is a 502 with the redacted end of stderr, the same again, and the close tells it too [R10 R43 R44]", async () => {
    const down = await startBrokenServer("status", { echo: "raw", message: "office is closed" });
    const session = await seeded("no-start", { url: down.url });
    const answer = await session.activate(play(step(say("never"))));
    expect(answer).toMatchObject({ status: 502, body: { detail: expect.stringMatching(/^Codex execution failed: [^]*office/) as string } });
    expect(answer.body["detail"]).toContain("[redacted]");
    expect((await session.activate(play(step(say("never"))))).body).toEqual(answer.body);
    expect(calls("no-start")).toBe(0);
    const { body } = await session.close();
    expect(body["agent_observations"]).toMatchObject({
      gaps: expect.arrayContaining([expect.objectContaining({ code: "agent_startup_failed" })]) as unknown,
    });
    await down.close();
  });

  it("whose turn fails is a response that failed and says how; one that meets the model's output limit is incomplete", async () => {
    const [failing, limited] = await Promise.all([seeded("turn-fails"), seeded("limited")]);
    const [failed, incomplete] = await Promise.all([
      failing.activate(play(withFault(step(say("x")), { kind: "failed", code: "server_error", message: "the model broke" }))),
      limited.activate(play(withFault(step(say("x")), { kind: "incomplete", after: [say("half of")] }))),
    ]);
    expect(failed).toMatchObject({ status: 200, body: { object: "response", status: "failed", error: { code: "server_error" } } });
    const { ng_agent_outcome } = failed.body["metadata"] as Record<string, string>;
    expect(JSON.parse(ng_agent_outcome!)).toEqual({ failure_kind: expect.any(String) as string, status_code: 502 });
    expect(incomplete).toMatchObject({ status: 200, body: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } } });
    await Promise.all([failing.close(), limited.close()]);
  });

  it("that is closed while it runs ends: its caller gets 409, all closers the same observations, and nothing is served any more", async () => {
    const session = await seeded("closed");
    const body = play(step(shell("sleep 300")));
    const waiting = session.activate(body);
    await vi.waitFor(() => expect(calls("closed")).toBe(1), { timeout: 60_000 });
    const answers = await Promise.all([session.close(), session.close(), session.close()]);
    expect(await waiting).toMatchObject({ status: 409, body: { detail: expect.stringContaining("closed") as string } });
    expect(answers[0]).toMatchObject({
      status: 200,
      body: {
        agent_observations: {
          records: expect.arrayContaining([expect.objectContaining({ kind: "agent_invocation", invocation_id: "closed" })]) as unknown,
          gaps: expect.arrayContaining([expect.objectContaining({ code: "agent_activation_interrupted" })]) as unknown,
        },
      },
    });
    for (const each of answers) expect(each.body).toEqual(answers[0].body);
    expect((await session.activate(body)).status).toBe(409);
  });

  it("whose worker is killed is a 502 and never a second attempt under another capture key; its close still tells of it [R44]", async () => {
    const session = await seeded("lost", { attempt: 1 });
    const body = play(step(shell("sleep 300")));
    const waiting = session.activate(body);
    await vi.waitFor(() => expect(calls("lost-a1")).toBe(1), { timeout: 60_000 });
    const worker = workers.shift()!;
    worker.child.kill("SIGKILL");
    workers.push(rig.startWorker());
    const answer = await waiting;
    expect(answer).toMatchObject({ status: 502, body: { detail: expect.stringContaining("worker was lost") as string } });
    expect((await session.activate(body)).body).toEqual(answer.body);
    expect([calls("lost"), calls("lost-a1"), calls("lost-a2")]).toEqual([0, 1, 0]);
    expect(await session.close()).toMatchObject({ status: 200, body: { agent_observations: { source: "codex" } } });
  });

  it("whose end does not come in time is told so, serves nothing meanwhile, and is closed by a later close", async () => {
    const session = await seeded("late");
    const body = play(step(shell("sleep 300")));
    const waiting = session.activate(body);
    await vi.waitFor(() => expect(calls("late")).toBe(1), { timeout: 60_000 });
    workers.shift()!.child.kill("SIGKILL"); // its claim lasts for longer than a close waits
    workers.push(rig.startWorker());
    expect(await session.close()).toMatchObject({ status: 503, body: { detail: expect.stringContaining("close it again") as string } });
    expect(await session.activate(body)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("being closed") as string },
    });
    expect((await rig.post("/v1/agent_sessions", session.seed)).status).toBe(409);
    await vi.waitFor(async () => expect((await session.close()).status).toBe(200), { timeout: 60_000 });
    expect((await waiting).status).toBe(409);
  });

  it("leaves no token of a grant in Redis, logs, results and receipts [R3]", () => {
    expect(tokens.length).toBeGreaterThan(5);
    for (const token of [...tokens, "configured-token-5566"]) {
      expect(filesHolding(rig.redis.dir, token)).toEqual([]);
      expect(filesHolding(`${root}/store`, token)).toEqual([]);
      expect(rig.logs()).not.toContain(token);
    }
    // The search finds what is there.
    expect(filesHolding(rig.redis.dir, "env:office").length).toBeGreaterThan(0);
    expect(filesHolding(`${root}/store`, "whole-a2").length).toBeGreaterThan(0);
    expect(rig.logs()).toContain("whole-a2");
  });
});
