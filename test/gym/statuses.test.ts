// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { RunningCommand } from "../support/rollcall-command.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { startAgentRig, type AgentRig, type Answer } from "./rig.ts";

// What the protocol answers without a worker, over HTTP: two API processes behind one address, one Redis.
const root = suiteDir();
const WINDOW_SECONDS = 6;
let rig: AgentRig;
let apis: RunningCommand[];

beforeAll(async () => {
  const toml = `[api]\nmax_waiting = 4\n[model]\nname = "stand-in"\n[agent_server]\nclose_retry_window_seconds = ${WINDOW_SECONDS}\nmax_body_mb = 1\n`;
  rig = await startAgentRig(root, toml);
  apis = await Promise.all([rig.startApi(), rig.startApi()]);
}, 120_000);
afterAll(() => rig.close());

const SEED = "/v1/agent_sessions";
const CLOSE = "/v1/agent_sessions/close";

function newId(): string {
  return `agent-session-${randomBytes(16).toString("hex")}`;
}

function grant(name: string, facts: object = {}): Record<string, unknown> {
  const connection = { transport: "streamable_http", url: "http://127.0.0.1:9/mcp", headers: { Token: "tok-1234567890" } };
  return { type: "mcp", name, required: true, connection, ...facts };
}

function seedOf(id: string, facts: object = {}): Record<string, unknown> {
  return { agent_session_id: id, episode_id: { rollout_id: "r1" }, task_id: { taskset: "t", task_id: "1" }, ...facts };
}

function close(id: string, options: { cookie?: string | null; attempt?: number } = {}): Promise<Answer> {
  const { cookie = null, attempt = 0 } = options;
  return rig.post(CLOSE, { agent_session_id: id, episode_id: { rollout_id: "r1", attempt } }, { cookie });
}

async function seeded(facts: object = {}): Promise<{ id: string; cookie: string }> {
  const id = newId();
  const { status, cookie } = await rig.post(SEED, seedOf(id, facts));
  expect(status).toBe(200);
  return { id, cookie: cookie! };
}

it("tells what its sessions can do [R56]", async () => {
  expect(await rig.get("/v1/agent_sessions/capabilities")).toMatchObject({
    status: 200,
    body: { schema: "rollcall.agent_capabilities/1", calls_model_from_sandbox: true, tool_transports: ["mcp"] },
  });
});

describe("a seed", () => {
  it("is the same session for the same payload, by whichever process, all at once, defaults spelt out or not", async () => {
    const id = "../caller supplied/id";
    const plain = seedOf(id, { tool_accesses: [grant("a"), grant("b")] });
    const spelt = { sandbox_access: null, ...plain, episode_id: { attempt: 0, rollout_id: "r1" } };
    const answers = await Promise.all([plain, spelt, plain, spelt, plain, spelt].map((body) => rig.post(SEED, body)));
    for (const { status, body, cookie } of answers) {
      expect({ status, body }).toEqual({ status: 200, body: { agent_session_id: id } });
      expect(cookie).toBe(answers[0]!.cookie);
    }
    expect((await rig.post(SEED, plain, { cookie: answers[0]!.cookie })).status).toBe(200);
    const { tool_accesses: tool_grants, ...rest } = plain;
    expect((await rig.post(SEED, { ...rest, tool_grants })).status).toBe(200);
  });

  it("of one id with several payloads at once is taken once", async () => {
    const id = newId();
    const bodies = ["a", "b", "c", "d", "e", "f"].map((name) => seedOf(id, { tool_accesses: [grant(name)] }));
    const answers = await Promise.all(bodies.map((body) => rig.post(SEED, body)));
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(5);
    expect(answers.filter(({ status, cookie }) => status === 200 && cookie !== null)).toHaveLength(1);
    const changed = seedOf(id, {
      tool_accesses: [grant("a", { connection: { ...(grant("a")["connection"] as object), headers: { Token: "x" } } })],
    });
    expect((await rig.post(SEED, changed)).status).toBe(409);
  });

  it.each<[string, object, RegExp]>([
    [
      "a required direct_http grant",
      { tool_accesses: [{ type: "direct_http", name: "d", required: true, base_url: "http://h/" }] },
      /direct_http/,
    ],
    ["a required grant with a name that Codex cannot use", { tool_accesses: [grant("a.b")] }, /a\.b/],
    ["an optional one whose name is none at all", { tool_accesses: [grant("-a", { required: false })] }, /tool_accesses\[0\]\.name/],
    ["two grants of one name", { tool_accesses: [grant("a"), grant("a")] }, /same name/],
    ["a grant that does not say whether it is required", { tool_accesses: [grant("a", { required: undefined })] }, /required/],
    [
      "a grant of an unknown transport",
      { tool_accesses: [grant("a", { connection: { transport: "sse", url: "http://h/" } })] },
      /connection/,
    ],
    ["a relative URL", { tool_accesses: [grant("a", { connection: { transport: "streamable_http", url: "/mcp" } })] }, /url/],
    ["an unknown field in a grant", { tool_accesses: [grant("a", { more: 1 })] }, /more/],
    ["an unknown field", { more: 1 }, /more/],
    ["grants under both of their names", { tool_accesses: [], tool_grants: [] }, /one of the two/],
    ["an unknown field in the episode", { episode_id: { rollout_id: "r1", repeat: 1 } }, /repeat/],
    ["a rollout id that ends like an attempt", { episode_id: { rollout_id: "r1-a2" } }, /rollout_id/],
    ["no task", { task_id: undefined }, /task_id/],
    ["an empty id", { agent_session_id: "" }, /agent_session_id/],
    [
      "a __proto__ among the headers",
      {
        tool_accesses: [
          JSON.parse(
            '{"type":"mcp","name":"a","required":true,"connection":{"transport":"streamable_http","url":"http://h/","headers":{"__proto__":"x"}}}',
          ) as object,
        ],
      },
      /__proto__/,
    ],
    [
      "a borrowed sandbox",
      { sandbox_access: { connection: { kind: "direct", provider_config_ref: "p", descriptor: {} }, workdir: "/root" } },
      /attaching .* not supported yet/,
    ],
    ["a borrowed sandbox that is none", { sandbox_access: { workdir: 5 } }, /sandbox_access/],
  ])("with %s is refused for good, in words [R25 R27 R50 R57]", async (_, facts, words) => {
    const id = newId();
    const { status, body, cookie } = await rig.post(SEED, seedOf(id, facts));
    expect({ status, cookie }).toEqual({ status: 422, cookie: null });
    expect(body["detail"]).toMatch(words);
    expect(JSON.stringify(body)).not.toContain("tok-1234567890");
    // Nothing was kept of it.
    if (!("agent_session_id" in facts)) expect((await rig.post(SEED, seedOf(id))).status).toBe(200);
  });

  it("that is not JSON, too large, or of a web page is refused", async () => {
    expect((await rig.post(SEED, null, { text: "{" })).status).toBe(422);
    // Only announced: a body that is not read any more is cut off by the end of the connection, and the answer with it.
    expect((await rig.post(SEED, null, { text: "", headers: { "content-length": "1100000" } })).status).toBe(413);
    expect((await rig.post(SEED, seedOf(newId()), { headers: { origin: "http://evil.example" } })).status).toBe(403);
  });

  it("with the cookie of another session, or one that nobody signed, is a conflict", async () => {
    const { cookie } = await seeded();
    expect((await rig.post(SEED, seedOf(newId()), { cookie })).status).toBe(409);
    expect((await rig.post(SEED, seedOf(newId()), { cookie: "agent_session_id=forged" })).status).toBe(409);
  });

  it("of an id that was closed before is a conflict, also when the close overtook it", async () => {
    const { id, cookie } = await seeded();
    await close(id, { cookie });
    expect((await rig.post(SEED, seedOf(id))).status).toBe(409);
    const overtaken = newId();
    expect((await close(overtaken)).status).toBe(200);
    expect((await rig.post(SEED, seedOf(overtaken))).status).toBe(409);
  });
});

describe("an activation", () => {
  const at = (key: string): string => `/ng-rollout/${key}/v1/responses`;

  it("without its session's cookie, at another route, or by /run is a conflict", async () => {
    const { cookie } = await seeded({ episode_id: { rollout_id: "r9", attempt: 1 } });
    const body = { input: "x" };
    expect((await rig.post(at("r9-a1"), body)).status).toBe(409);
    expect((await rig.post("/v1/responses", body)).status).toBe(409);
    for (const bad of ["agent_session_id=", "agent_session_id=forged", cookie.replace(/agent-session-./, "agent-session-x")]) {
      expect((await rig.post(at("r9-a1"), body, { cookie: bad })).status).toBe(409);
    }
    for (const path of [at("r9"), at("r9-a2"), "/v1/responses", "/run"]) expect((await rig.post(path, body, { cookie })).status).toBe(409);
    expect((await rig.post("/run", body)).status).toBe(404);
  });

  it("that is refused does not use up the session: 422 as often as it comes, and never a conflict", async () => {
    const { id, cookie } = await seeded();
    const bodies: object[] = [
      { input: "x", temperature: 1 },
      { input: "x", seed: 1 },
      { input: "x", model: "another" },
      { input: "x", tools: [{}] },
      { input: "x", metadata: { extra_body: "{}" } },
      {},
      { input: "" },
      { input: 5 },
      {
        input: [
          { role: "user", content: "a" },
          { role: "user", content: "b" },
        ],
      },
      { input: [{ role: "assistant", content: "a" }] },
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "http://h/" }] }] },
    ];
    for (const body of bodies) expect((await rig.post(at("r1"), body, { cookie })).status, JSON.stringify(body)).toBe(422);
    expect((await rig.post(at("r1"), null, { cookie, text: "no JSON" })).status).toBe(422);
    expect(await close(id, { cookie })).toMatchObject({ status: 200 });
  });

  it("that waits for a worker ends with 409 when its session is closed, and none is served after that", async () => {
    const { id, cookie } = await seeded();
    const system = [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "input_text", text: "x" }] },
    ];
    const waiting = [0, 1, 2].map(() => rig.post(at("r1"), { input: system }, { cookie }));
    await vi.waitFor(
      async () => expect((await rig.post(at("r1"), { input: "another" }, { cookie })).body["detail"]).toContain("another body"),
      { timeout: 20_000 },
    );
    const closed = await close(id, { cookie });
    expect(closed, rig.logs().slice(-6_000)).toMatchObject({
      status: 200,
      body: { agent_observations: { source: "codex", records: [], gaps: [{ code: "agent_activation_interrupted" }] } },
    });
    for (const each of await Promise.all(waiting)) expect(each.status).toBe(409);
    expect((await rig.post(at("r1"), { input: system }, { cookie })).status).toBe(409);
  });
});

it("more requests than may wait are told to come again, and so are those of a process that stops; the others go on waiting", async () => {
  const { id, cookie } = await seeded();
  const answers: Answer[] = [];
  const send = (): Promise<number> =>
    rig.post("/ng-rollout/r1/v1/responses", { input: "x" }, { cookie }).then((answer) => answers.push(answer));
  const waiting = Array.from({ length: 12 }, send);
  await vi.waitFor(() => expect(answers, JSON.stringify(answers)).toHaveLength(4), { timeout: 20_000 });
  for (const { status, body } of answers.splice(0))
    expect({ status, body }).toMatchObject({ status: 503, body: { detail: expect.stringContaining("wait") as string } });

  const stopped = apis.shift()!;
  stopped.child.kill("SIGTERM");
  expect((await stopped.ended).code).toBe(0);
  apis.push(await rig.startApi());
  await vi.waitFor(() => expect(answers).toHaveLength(4));
  for (const { status, body } of answers.splice(0))
    expect({ status, body }).toMatchObject({ status: 503, body: { detail: expect.stringContaining("stops") as string } });
  expect((await close(id)).status).toBe(200);
  await Promise.all(waiting);
  expect(answers.map(({ status }) => status)).toEqual([409, 409, 409, 409]);
});

describe("a close", () => {
  it("of a session that never ran, again, at once or without its cookie answers the same, and of a wrong episode or cookie is a conflict", async () => {
    const { id, cookie } = await seeded();
    const other = await seeded();
    expect((await close(id, { cookie, attempt: 1 })).status).toBe(409);
    expect((await close(id, { cookie: other.cookie })).status).toBe(409);
    expect((await close(id, { cookie: "agent_session_id=forged" })).status).toBe(409);
    const answers = await Promise.all([close(id, { cookie }), close(id), close(id, { cookie })]);
    for (const { status, body } of answers) {
      expect({ status, body }).toEqual({
        status: 200,
        body: {
          agent_session_id: id,
          agent_observations: { source: "codex", records: [], gaps: [{ code: "agent_activation_interrupted" }] },
          resources_cookies: null,
        },
      });
    }
    expect((await close(id, { attempt: 3 })).status).toBe(409);
    expect((await rig.post(CLOSE, { agent_session_id: id, episode_id: { rollout_id: "r1" }, more: 1 })).status).toBe(422);
    expect((await rig.post(CLOSE, { agent_session_id: id })).status).toBe(422);
  });

  it("has a receipt for its window, which no retry makes longer; after it 409 with the cookie, and a new tombstone without", async () => {
    const { id, cookie } = await seeded();
    const since = performance.now();
    expect((await close(id, { cookie })).status).toBe(200);
    const gone = await vi.waitFor(
      async () => {
        const answer = await close(id, { cookie });
        expect(answer.status).toBe(409);
        return answer;
      },
      { timeout: 30_000, interval: 500 },
    );
    expect(gone.body["detail"]).toContain("expired");
    expect(performance.now() - since).toBeGreaterThan(WINDOW_SECONDS * 1_000 - 500);
    expect((await rig.post(SEED, seedOf(id), { cookie })).status).toBe(409);
    expect((await close(id)).status).toBe(200);
    expect((await close(id, { cookie })).status).toBe(200);
  });
});

it("nothing else is there, and every answer but a success is text", async () => {
  expect((await rig.get("/v1/agent_sessions")).status).toBe(404);
  expect((await rig.post("/v1/elsewhere", {})).status).toBe(404);
});

it("while Redis is away every request is told so at once, and what was seeded is there when it comes back, by processes that started since", async () => {
  const { id, cookie } = await seeded();
  const redis = rig.redis;
  await redis.kill9();
  const started = performance.now();
  const away = [
    rig.post(SEED, seedOf(newId())),
    rig.post("/ng-rollout/r1/v1/responses", { input: "x" }, { cookie }),
    close(id, { cookie }),
  ];
  for (const { status } of await Promise.all(away)) expect(status).toBe(503);
  expect(performance.now() - started).toBeLessThan(30_000);
  await redis.restart();
  apis.shift()!.child.kill("SIGKILL");
  await rig.startApi();
  await vi.waitFor(async () => expect((await rig.post(SEED, seedOf(id), { cookie })).status).toBe(200), { timeout: 30_000, interval: 300 });
});
