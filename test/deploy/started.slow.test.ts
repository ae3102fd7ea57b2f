// SPDX-License-Identifier: Apache-2.0
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { callApi } from "../api/rig.ts";
import { rollcall, startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";
import { pathOf } from "./documents.ts";

const WAIT = { timeout: 60_000, interval: 100 };

it("API and worker run from the deployment's entry points, with every secret in a file, on the Redis that redis-start.sh starts; doctor --worker is a health check", async () => {
  const root = tempDir();
  const secrets = {
    redis_password: "pw-in-a-file-41",
    secret_key: randomBytes(32).toString("base64"),
    api_key: "rck-in-a-file-42",
    openai_api_key: "sk-in-a-file-43",
  };
  mkdirSync(join(root, "data"));
  for (const [name, value] of Object.entries(secrets)) writeFileSync(join(root, name), `${value}\n`);
  const port = await freePort();
  const redis = spawn("sh", [pathOf("deploy/kubernetes/redis-start.sh")], {
    stdio: "ignore",
    env: {
      PATH: process.env["PATH"],
      REDIS_PASSWORD_FILE: join(root, "redis_password"),
      REDIS_PORT: String(port),
      REDIS_DATA_DIR: join(root, "data"),
    },
  });
  onTestFinished(async () => {
    redis.kill("SIGKILL");
    if (redis.exitCode === null && redis.signalCode === null) await once(redis, "exit");
  });
  const cli = (...command: string[]): string =>
    execFileSync("redis-cli", ["-p", String(port), "--user", "rollcall", "--no-auth-warning", ...command], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], REDISCLI_AUTH: secrets.redis_password },
    }).trim();
  await vi.waitFor(() => expect(cli("PING")).toBe("PONG"), WAIT);
  for (const forbidden of [["CONFIG", "GET", "dir"], ["SET", "foreign", "1"], ["FLUSHALL"]]) expect(cli(...forbidden)).toContain("NOPERM");
  expect(readFileSync(`/proc/${redis.pid}/cmdline`, "utf8")).not.toContain(secrets.redis_password);

  const model = await startModelServer({ apiKey: secrets.openai_api_key });
  onTestFinished(() => model.close());
  const env = {
    REDIS_URL: `redis://rollcall@127.0.0.1:${port}`,
    REDIS_PASSWORD_FILE: join(root, "redis_password"),
    ROLLCALL_SECRET_KEY_FILE: join(root, "secret_key"),
    ROLLCALL_ARTIFACTS_DIR: join(root, "artifacts"),
    ROLLCALL_STATE_DIR: join(root, "state"),
    ROLLCALL_DRAIN_SECONDS: "5",
    ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
  };
  expect(await rollcall(["doctor", "--worker"], { env })).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^fail {2}worker {3}no worker of/),
  });

  const apiEnv = { ...env, ROLLCALL_API_KEY_FILE: join(root, "api_key"), ROLLCALL_API_PORT: "0" };
  const api = startRollcall([], { entry: "workers/api.js", env: apiEnv });
  const worker = startRollcall([], { entry: "workers/activation.js", env: { ...env, OPENAI_API_KEY_FILE: join(root, "openai_api_key") } });
  for (const { child } of [api, worker]) onTestFinished(() => void child.kill("SIGKILL"));
  const origin = await vi.waitFor(() => {
    const found = /listening on (\S+)/.exec(api.stdout())?.[1];
    expect(found, api.stderr()).toBeDefined();
    return found!;
  }, WAIT);
  const activation = {
    activation_id: "a",
    run_id: "r",
    task_id: { taskset: "t", task_id: "1" },
    input: "Say done.",
    model: { name: "m", base_url: model.captureBaseUrl },
  };
  expect(await callApi(origin, "/v1/activations", { key: secrets.api_key, body: activation })).toMatchObject({ status: 202 });
  const { body } = await callApi(origin, "/v1/activations/a/result?wait=60", { key: secrets.api_key });
  expect(body, worker.stderr()).toMatchObject({ status: "completed" });
  expect(await rollcall(["doctor", "--worker"], { env })).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok {4}worker/) });

  for (const one of [api, worker]) {
    one.child.kill("SIGTERM");
    expect((await one.ended).code, one.stderr()).toBe(0);
  }
  expect((await rollcall(["doctor", "--worker"], { env })).code).toBe(1);
  const said = [api, worker].map((one) => one.stdout() + one.stderr()).join("");
  for (const value of Object.values(secrets)) expect(said).not.toContain(value);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
