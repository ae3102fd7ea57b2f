// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { processIdentity } from "../../src/host/process.ts";
import { createLogger } from "../../src/logging.ts";
import { cancelRun } from "../../src/queue/cancel.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { startSentinel } from "../../src/queue/sentinel.ts";
import { LiveSecrets } from "../../src/redact/index.ts";
import { writeOwnerRecord } from "../../src/sandbox/owner-record.ts";
import { activationOf, TEST_KEYS } from "../queue/rig.ts";
import { startTestRedis } from "../support/redis.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it("gc tells with --dry-run what dead workers left, removes it, and then finds nothing", async () => {
  const state = tempDir();
  const stateDir = join(state, "worker");
  const mark = "0123456789abcdef";
  const directory = join(stateDir, "sandboxes", `box.${mark}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "config.toml"), 'Authorization = "Bearer a-secret"');
  const dead = { ...processIdentity()!, pid: spawnSync("/bin/true").pid, start_time: "1" };
  const owner = { activation_id: "act-a", attempt: 0, process: dead };
  await writeOwnerRecord(stateDir, { id: "box", provider: "host", owner, directory, mark, uid: null });
  const env = { ROLLCALL_STATE_DIR: state };
  const ours = (stdout: string): string[] => stdout.split("\n").filter((line) => line.includes(state)); // root workers share more

  expect(ours((await rollcall(["gc", "--dry-run"], { env })).stdout)).toEqual([
    expect.stringMatching(/^would remove {2}sandbox .*act-a, attempt 0/),
  ]);
  expect(existsSync(directory)).toBe(true);
  expect(ours((await rollcall(["gc"], { env })).stdout)).toEqual([expect.stringMatching(/^removed {7}sandbox /)]);
  expect(existsSync(directory)).toBe(false);
  const { found } = JSON.parse((await rollcall(["gc", "--json"], { env })).stdout) as { found: { what: string }[] };
  expect(found.filter(({ what }) => what.includes(state))).toEqual([]);
});

it("gc takes halves of documents that are a day old out of the artifact store, and nothing else", async () => {
  const root = tempDir();
  await openDirectoryStore(root);
  const [attempt, half] = [join(root, "act-a", "attempt-0"), ".result.json.7-0123456789ab.tmp"];
  mkdirSync(attempt, { recursive: true });
  const [old, fresh, mine] = [join(root, "act-a", half), join(attempt, ".attempt.json.7-0123456789ab.tmp"), join(attempt, ".notes.tmp")];
  for (const path of [old, fresh, mine]) writeFileSync(path, "{");
  for (const path of [old, mine]) utimesSync(path, new Date(0), new Date(0));
  const env = { ROLLCALL_STATE_DIR: tempDir(), ROLLCALL_ARTIFACTS: root };
  const { found } = JSON.parse((await rollcall(["gc", "--json"], { env })).stdout) as { found: { what: string; done: string }[] };
  expect(found.filter(({ what }) => what.startsWith(root))).toMatchObject([{ what: old, done: "removed" }]);
  expect([old, fresh, mine].map((path) => existsSync(path))).toEqual([false, true, true]);
});

it("clean counts with --dry-run, removes what ended long enough ago, and a whole run by its id", async () => {
  const redis = await startTestRedis({ tcp: { password: "pw" } });
  onTestFinished(() => redis.stop());
  const queues = openQueues(redis.target, { onError: () => undefined });
  onTestFinished(() => queues.close());
  const log = createLogger({ level: "silent", secrets: new LiveSecrets(), destination: process.stderr });
  const sentinel = await startSentinel({ queues, store: await openDirectoryStore(tempDir()), log });
  const enqueue = (ids: string[], run_id: string) =>
    enqueueActivations(
      queues,
      ids.map((id) => activationOf(id, { run_id })),
      { keys: TEST_KEYS },
    );
  await enqueue(["a-1", "a-2"], "run-a");
  await cancelRun(queues, "run-a", { by: "a test", at: new Date().toISOString(), reason: "" });
  await vi.waitFor(async () => expect(await queues.final.getCompletedCount()).toBe(2), { timeout: 20_000 });
  await sentinel.close({ graceMs: 1_000 });
  await enqueue(["b-1", "b-2", "b-3"], "run-b");

  const env = { REDIS_URL: redis.target.kind === "url" ? redis.target.url : "" }; // neither key nor store are needed
  const clean = async (...args: string[]) => JSON.parse((await rollcall(["clean", "--json", ...args], { env })).stdout) as object;
  expect(await clean()).toEqual({ dry_run: false, activations: 0, strays: 0, agent_sessions: 0 }); // a week is the default
  expect(await clean("--older-than", "0", "--dry-run")).toEqual({ dry_run: true, activations: 2, strays: 0, agent_sessions: 0 });
  expect(await clean("--older-than", "0")).toEqual({ dry_run: false, activations: 2, strays: 0, agent_sessions: 0 });
  expect(await clean("--run", "run-b")).toEqual({ dry_run: false, run_id: "run-b", ended: 0, open: 3, held: 0 });
  const left = (await queues.redis.keys("*")).filter((key) => /run-|[ab]-\d/.test(key));
  expect(left).toEqual([]);
  expect(await rollcall(["clean", "--run", "run-c"], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("nothing of a run run-c") as string,
  });
});
