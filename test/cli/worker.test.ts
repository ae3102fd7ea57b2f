// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { startTestRedis } from "../support/redis.ts";
import { rollcall, startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it("workers of a shared Redis run what a following `run` queues, and stop at SIGTERM with exit code 0", async () => {
  const root = tempDir();
  const redis = await startTestRedis({ tcp: { password: "pw" } });
  onTestFinished(() => redis.stop());
  const model = await startModelServer({ apiKey: "k" });
  onTestFinished(() => model.close());
  const env = {
    REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
    ROLLCALL_SECRET_KEY: randomBytes(32).toString("base64"),
    ROLLCALL_ARTIFACTS_DIR: join(root, "store"),
    XDG_STATE_HOME: join(root, "state"),
  };
  const tasks = join(root, "tasks.jsonl");
  writeFileSync(tasks, ["a", "b"].map((id) => `${JSON.stringify({ id, input: "Say done." })}\n`).join(""));

  const worker = startRollcall(["worker", "--concurrency", "2"], { env: { ...env, OPENAI_API_KEY: "k" } });
  onTestFinished(() => void worker.child.kill("SIGKILL"));
  await vi.waitFor(() => expect(worker.stderr()).toContain("worker started"), { timeout: 30_000 });

  // The one that follows has no model key: only workers need it.
  const run = await rollcall(["run", tasks, "--out", join(root, "out"), "--model", "m", "--model-base-url", model.captureBaseUrl], { env });
  expect(run.stderr).toContain("results: ");
  expect(run.code).toBe(0);
  expect(run.stdout).toContain("2 completed");

  worker.child.kill("SIGTERM");
  const ended = await worker.ended;
  expect(ended.code).toBe(0);
  expect(ended.stderr + run.stderr + run.stdout).not.toContain(env.ROLLCALL_SECRET_KEY);
});

it("a worker without REDIS_URL and without a run to join says what to set", async () => {
  const { code, stderr } = await rollcall(["worker"], { env: { ROLLCALL_ARTIFACTS_DIR: tempDir() } });
  expect(stderr).toContain("set REDIS_URL, or name a run's output directory with --out");
  expect(code).toBe(2);
});

it("schema writes each JSON Schema it names, and suggests the one that is meant", async () => {
  const directory = tempDir();
  const names = (await rollcall(["schema"])).stdout.trim().split("\n");
  expect(names).toContain("activation");
  await rollcall(["schema", "--out", directory]);
  for (const name of names) expect(JSON.parse(readFileSync(join(directory, `${name}.json`), "utf8"))).toHaveProperty("title");
  expect(await rollcall(["schema", "activaton"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("did you mean activation?") as string,
  });
});
