// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { startTestRedis } from "../support/redis.ts";
import { rollcall, startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it("a `run` on a shared Redis says that no worker lives; the one started then runs what is queued, and stops at SIGTERM with exit code 0", async () => {
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

  // The one that follows has no model key: only workers need it.
  const args = ["run", tasks, "--out", join(root, "out"), "--model", "m", "--model-base-url", model.captureBaseUrl];
  const run = startRollcall(args, { env });
  onTestFinished(() => void run.child.kill("SIGKILL"));
  await vi.waitFor(() => expect(run.stderr()).toContain("no worker of this Redis lives"), { timeout: 30_000 });

  const worker = startRollcall([], {
    env: { ...env, OPENAI_API_KEY: "k", ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl },
    entry: "workers/activation.js",
  });
  onTestFinished(() => void worker.child.kill("SIGKILL"));
  const followed = await run.ended;
  expect(followed.stderr).toContain("results: ");
  expect(followed.code).toBe(0);
  expect(followed.stdout).toContain("2 completed");

  // A task for another Codex than the one that lives: told when it is queued, once.
  writeFileSync(
    tasks,
    ["c", "d"]
      .map((id) => `${JSON.stringify({ task_id: { taskset: "t", task_id: id }, input: "Say done.", codex: { version: "9.9.9" } })}\n`)
      .join(""),
  );
  const stray = startRollcall(["run", tasks, "--out", join(root, "out-2"), "--model", "m"], { env });
  onTestFinished(() => void stray.child.kill("SIGKILL"));
  await vi.waitFor(() => expect(stray.stderr()).toContain("no live worker has codex_version 9.9.9"), { timeout: 60_000, interval: 100 });
  stray.child.kill("SIGINT");
  expect((await stray.ended).stderr.split("no live worker has")).toHaveLength(2);

  worker.child.kill("SIGTERM");
  const ended = await worker.ended;
  expect(ended.code).toBe(0);
  expect(ended.stderr + followed.stderr + followed.stdout).not.toContain(env.ROLLCALL_SECRET_KEY);
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
