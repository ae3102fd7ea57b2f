// SPDX-License-Identifier: Apache-2.0
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { pino } from "pino";
import { expect, it, onTestFinished, vi } from "vitest";
import { hashApiKey, openApiKeys } from "../../src/api/api-keys.ts";
import { apiKeysOf } from "../../src/cli/api-keys-of.ts";
import { loadSettings } from "../../src/config/load.ts";
import { tempDir } from "../support/temp-dir.ts";
import { asked, startApiRig } from "./rig.ts";

const ROUTES = [
  ["POST", "/v1/activations", "enqueue"],
  ["GET", "/v1/activations/a", "read"],
  ["DELETE", "/v1/activations/a", "enqueue"],
  ["GET", "/v1/activations/a/result", "read"],
  ["GET", "/v1/activations/a/events", "read"],
  ["POST", "/v1/activations/state", "read"],
  ["POST", "/v1/activations/cancel", "enqueue"],
  ["GET", "/v1/runs/r", "read"],
  ["GET", "/v1/runs/r/results", "read"],
  ["POST", "/v1/runs/r/pause", "enqueue"],
  ["POST", "/v1/runs/r/resume", "enqueue"],
  ["POST", "/v1/runs/r/retry", "enqueue"],
  ["DELETE", "/v1/runs/r", "enqueue"],
  ["GET", "/v1/artifacts/a/0/events.jsonl", "read"],
  ["POST", "/v1/results/claim", "enqueue"],
  ["POST", "/v1/results/ack", "enqueue"],
  ["GET", "/v1/results/queues", "read"],
  ["PUT", `/v1/files/${"0".repeat(64)}`, "enqueue"],
  ["POST", "/v1/seal", "enqueue"],
] as const;

const bodyFor = (method: string): { body?: unknown } => (method === "POST" || method === "PUT" ? { body: {} } : {});

it("without a key every route answers 401, known or not; a key needs the scope of the route [C7]", async () => {
  const file = join(tempDir(), "keys");
  writeFileSync(file, `# who may what\nreader read ${hashApiKey("read-key")}\nproducer enqueue ${hashApiKey("enqueue-key")}\n`);
  const rig = await startApiRig({ ports: { apiKeys: await openApiKeys({ single: null, file, onProblem: () => undefined }) } });
  for (const [method, path, scope] of [...ROUTES, ["GET", "/v1/nothing", null], ["PUT", "/v1/queues/x/retry", null]] as const) {
    for (const headers of [
      {},
      { authorization: "Bearer wrong" },
      { authorization: "Basic cmVhZC1rZXk=" },
      { authorization: "Bearer" },
      { cookie: "k=read-key" },
    ]) {
      const { status, body } = await rig.call(path, { method, key: null, headers, ...bodyFor(method) });
      expect([method, path, status, body.code]).toEqual([method, path, 401, "key_missing"]);
    }
    const asReader = await rig.call(path, { method, key: "read-key", ...bodyFor(method) });
    if (scope === "enqueue") expect([path, asReader.status, asReader.body.code]).toEqual([path, 403, "scope_missing"]);
    else expect([path, [200, 202, 404, 422].includes(asReader.status)]).toEqual([path, true]);
    const asProducer = await rig.call(path, { method, key: "enqueue-key", ...bodyFor(method) });
    expect([path, [200, 202, 404, 422].includes(asProducer.status)]).toEqual([path, true]);
  }
  for (const path of ["/healthz", "/readyz", "/openapi.json", "/docs"]) expect((await rig.call(path, { key: null })).status).toBe(200);
});

it("keys are added and taken away in the file without a restart; a file that became unreadable changes nothing", async () => {
  const file = join(tempDir(), "keys");
  writeFileSync(file, `one read ${hashApiKey("first")}\n`);
  const problems: string[] = [];
  const apiKeys = await openApiKeys({ single: null, file, onProblem: (error) => problems.push(error.message) });
  const rig = await startApiRig({ ports: { apiKeys } });
  const status = async (key: string): Promise<number> => (await rig.call("/v1/results/queues", { key })).status;
  expect([await status("first"), await status("second")]).toEqual([200, 401]);
  writeFileSync(file, `two read ${hashApiKey("second")}\n`);
  await vi.waitFor(async () => expect([await status("first"), await status("second")]).toEqual([401, 200]), {
    timeout: 20_000,
    interval: 200,
  });
  writeFileSync(file, `two read second\n`);
  await vi.waitFor(async () => expect([await status("second"), problems.length > 0]).toEqual([200, true]), {
    timeout: 20_000,
    interval: 200,
  });
  expect(problems.join()).toContain("line 1");
  expect(problems.join()).not.toContain("second"); // it may be a key in clear
});

it("a keys file that cannot be used stops the start, naming the line and not its words", async () => {
  const file = join(tempDir(), "keys");
  for (const line of [
    "alice read rck_cleartext",
    `bob write ${hashApiKey("k")}`,
    `a b ${hashApiKey("k")}`,
    "only-a-name",
    `x read ${hashApiKey("k")} rck_cleartext`,
  ]) {
    writeFileSync(file, `\n${line}\n`);
    const opened = openApiKeys({ single: null, file, onProblem: () => undefined });
    await expect(opened).rejects.toMatchObject({ code: "api_keys_invalid", message: expect.stringContaining("line 2") as string });
    await expect(opened).rejects.not.toMatchObject({ message: expect.stringContaining("rck_cleartext") as string });
  }
  await expect(openApiKeys({ single: null, file: `${file}.not`, onProblem: () => undefined })).rejects.toMatchObject({
    code: "api_keys_invalid",
  });
});

it("without a configured key one is made once, for its owner alone, and the log says where and not what", async () => {
  const state = join(tempDir(), "state");
  const env = { ROLLCALL_STATE_DIR: state };
  const settings = await loadSettings({ env, file: null });
  let said = "";
  const log = pino({ level: "info" }, { write: (line: string) => void (said += line) });
  const keys = await apiKeysOf(settings, env, log);
  const path = join(state, "api-key");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const made = readFileSync(path, "utf8");
  expect(said).toContain(path);
  expect(said).not.toContain(made);
  const again = await apiKeysOf(settings, env, log);
  for (const one of [keys, again]) expect((await one.find(made))?.may("admin")).toBe(true);
  expect(await keys.find("")).toBeNull();
  const given = await apiKeysOf(settings, { ...env, ROLLCALL_API_KEY: "mine" }, log);
  expect([await given.find(made), (await given.find("mine"))?.name]).toEqual([null, "default"]);
});

it("another Host is refused, a browser of another site learns nothing, and every answer has the security headers [C7]", async () => {
  const rig = await startApiRig();
  const foreign = async (host: string): Promise<number> => {
    const asking = request(rig.api.origin, { path: "/v1/results/queues", headers: { host, authorization: `Bearer ${rig.key}` } });
    asking.end();
    const [response] = (await once(asking, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode!;
  };
  for (const host of ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[::2]"])
    expect([host, await foreign(host)]).toEqual([host, 421]);
  for (const host of ["127.0.0.1", "127.0.0.1:1"]) expect([host, await foreign(host)]).toEqual([host, 200]);

  const headers = {
    origin: "https://evil.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
  };
  for (const method of ["OPTIONS", "GET"]) {
    const { headers: answered, status } = await rig.call("/v1/activations", { method, key: null, headers });
    expect(status).toBe(401);
    expect(answered.get("access-control-allow-origin")).toBeNull();
    expect(answered.get("x-content-type-options")).toBe("nosniff");
    expect(answered.get("x-frame-options")).toBe("SAMEORIGIN");
    expect(answered.get("content-security-policy")).toContain("default-src 'self'");
    expect(answered.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  }
});

it("requests that are too large or too many are refused, and JSON that is none", async () => {
  const rig = await startApiRig({
    ports: { limits: { max_body_bytes: 10_000, max_file_bytes: 1e6, requests_per_second: 8, max_waiting: 5 } },
  });
  const large = asked("a", { input: "x".repeat(20_000) });
  expect(await rig.call("/v1/activations", { body: large })).toMatchObject({ status: 413, body: { code: "body_too_large" } });
  const chunked = await fetch(`${rig.api.origin}/v1/activations`, {
    method: "POST",
    headers: { authorization: `Bearer ${rig.key}`, "content-type": "application/json" },
    body: new Blob([JSON.stringify(large)]).stream(),
    duplex: "half",
  });
  expect(chunked.status).toBe(413);
  for (const body of ["{", "", "\u0000", '{"a":1}{"b":2}'])
    expect(await rig.call("/v1/activations", { method: "POST", body })).toMatchObject({
      status: expect.toSatisfy((status) => status === 400 || status === 422) as number,
    });
  const many = await Promise.all(Array.from({ length: 60 }, () => rig.call("/v1/results/queues")));
  const refused = many.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused[0]!.headers.get("retry-after")).toBe("1");
});

it("a fault of ours is told by its request id alone; the log has the rest", async () => {
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const rig = await startApiRig({ ports: { log } });
  rig.store.readCommit = () => Promise.reject(new Error("EIO at /srv/private/store"));
  const { status, body, headers } = await rig.call("/v1/activations/never/result?secret=query-word", {
    headers: { "x-request-id": "my-id.1" },
  });
  expect([status, body.code, body.request_id, headers.get("x-request-id")]).toEqual([500, "internal", "my-id.1", "my-id.1"]);
  expect(JSON.stringify(body)).not.toMatch(/private|\.ts|at /);
  const said = lines.join("");
  expect(said).toContain("/srv/private/store");
  expect(said).toContain('"request_id":"my-id.1"');
  for (const word of ["query-word", rig.key]) expect(said).not.toContain(word);
});

it("while Redis is away, or does not answer, every request is answered 503 soon, and works again afterwards", async () => {
  const rig = await startApiRig();
  await rig.call("/v1/activations", { body: asked("a") });
  const all = async (): Promise<[string, number][]> =>
    Promise.all(
      ROUTES.filter(([, path]) => !/artifacts|files|seal/.test(path)).map(async ([method, path]): Promise<[string, number]> => {
        const body = path.endsWith("claim")
          ? { queue: "results" }
          : path.endsWith("ack")
            ? ACK
            : path === "/v1/activations"
              ? asked("b")
              : { activation_ids: ["a"] };
        const asking = rig.call(path, { method, ...(method === "POST" && !path.includes("runs") ? { body } : {}) });
        return [`${method} ${path}`, (await asking).status];
      }),
    );
  const ACK = { results: [{ result_id: "a", receipt: "6f7c1a52-7f0b-4c39-9d9a-0d5f0f6f9a11" }] };
  const away = ROUTES.filter(([, path]) => !/artifacts|files|seal/.test(path)).map(([method, path]) => [`${method} ${path}`, 503]);

  process.kill(rig.redis.pid, "SIGSTOP");
  onTestFinished(() => void process.kill(rig.redis.pid, "SIGCONT"));
  expect(await all()).toEqual(away);
  expect(await rig.call("/readyz")).toMatchObject({ status: 503, body: { ready: false, redis: "away" } });
  expect((await rig.call("/healthz")).status).toBe(200);
  process.kill(rig.redis.pid, "SIGCONT");
  await vi.waitFor(async () => expect((await rig.call("/v1/activations/a")).status).toBe(200), { timeout: 20_000 });

  await rig.redis.kill9();
  await vi.waitFor(async () => expect(await all()).toEqual(away), { timeout: 20_000 });
  const { headers } = await rig.call("/v1/activations/a");
  expect(headers.get("retry-after")).toBe("2");
  await rig.redis.restart();
  await vi.waitFor(async () => expect((await rig.call("/v1/activations/a")).status).toBe(200), { timeout: 30_000 });
});

it("a full and a read-only Redis make the server not ready, and are named to callers who want to write [fault B7]", async () => {
  const rig = await startApiRig();
  onTestFinished(() => rig.close());
  const { redis } = rig.queues;
  const faults: [string, () => Promise<unknown>, () => Promise<unknown>][] = [
    ["full", () => redis.config("SET", "maxmemory", 1), () => redis.config("SET", "maxmemory", 0)],
    ["read_only", () => redis.replicaof("127.0.0.1", 1), () => redis.replicaof("NO", "ONE")],
  ];
  for (const [state, begin, end] of faults) {
    expect(await rig.call("/readyz")).toMatchObject({ status: 200, body: { ready: true, redis: "ok" } });
    await begin();
    expect.soft(await rig.call("/readyz")).toMatchObject({ status: 503, body: { ready: false, redis: state } });
    const queued = await rig.call("/v1/activations", { method: "POST", body: asked("b") });
    expect.soft(queued).toMatchObject({ status: 503, body: { code: "redis_refuses", detail: expect.stringContaining("Redis is") } });
    await end();
  }
});
