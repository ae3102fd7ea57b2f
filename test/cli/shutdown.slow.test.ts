// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, step } from "../../examples/stand-ins/script.ts";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { findActivations } from "../../src/queue/find-activation.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { activationOf } from "../queue/rig.ts";
import { processesNaming } from "../support/live-processes.ts";
import { startTestRedis } from "../support/redis.ts";
import { startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

const WAIT = { timeout: 90_000, interval: 50 };
const IDS = ["act-long-1", "act-long-2", "act-starting", "act-waiting"];

it("SIGTERM with long sessions and one whose sandbox is being prepared, then a second one: all go back uncharged, nothing is orphaned, exit code 0 [D4]", async () => {
  const root = tempDir();
  const redis = await startTestRedis({ tcp: { password: "pw" } });
  onTestFinished(() => redis.stop());
  let released = false;
  const model = await startModelServer({
    apiKey: "k",
    scriptFor: () => ({ steps: [{ ...step(say("Done.")), ...(released ? {} : { fault: { kind: "hang" as const } }) }] }),
  });
  onTestFinished(() => model.close());
  // A tool server that is looked at before Codex begins, and does not answer.
  const slow = createServer((_, response) => void (released && response.end("no tools"))).listen(0, "127.0.0.1");
  await once(slow, "listening");
  onTestFinished(() => {
    slow.closeAllConnections();
    slow.close();
  });
  const key = randomBytes(32).toString("base64");
  writeFileSync(join(root, "rollcall.toml"), "drain_seconds = 600\n");
  const env = {
    ROLLCALL_CONFIG: join(root, "rollcall.toml"),
    REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
    ROLLCALL_SECRET_KEY: key,
    ROLLCALL_ARTIFACTS_DIR: join(root, "store"),
    ROLLCALL_STATE_DIR: join(root, "state"),
    OPENAI_API_KEY: "k",
    ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
  };
  const worker = (concurrency: number) => {
    const started = startRollcall(["worker", "--concurrency", String(concurrency)], { env });
    onTestFinished(() => void started.child.kill("SIGKILL"));
    return started;
  };
  const queues = openQueues(redis.target, { onError: () => undefined });
  onTestFinished(() => queues.close());
  const store = await openDirectoryStore(join(root, "store"));
  const states = async () =>
    Object.fromEntries((await findActivations(queues, IDS)).map(({ activation_id, state }) => [activation_id, state]));

  const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/mcp`;
  const activations = IDS.map((id) =>
    activationOf(id, {
      reply_to: "results",
      model: { name: "m", base_url: model.captureBaseUrl },
      codex: { mcp_startup_timeout_seconds: 60 },
      tool_grants:
        id === "act-starting" ? [{ type: "mcp", name: "office", required: false, connection: { transport: "streamable_http", url } }] : [],
    }),
  );
  const first = worker(3);
  await enqueueActivations(queues, activations, { keys: parseSecretKeys(key) });
  await vi.waitFor(async () => {
    expect(await states()).toEqual({
      "act-long-1": "running",
      "act-long-2": "running",
      "act-starting": "starting",
      "act-waiting": "waiting",
    });
  }, WAIT);

  first.child.kill("SIGTERM"); // drains: they may go on for ten minutes
  await vi.waitFor(() => expect(first.stderr()).toContain("takes nothing new"), WAIT);
  expect(first.child.exitCode).toBeNull();
  first.child.kill("SIGTERM");
  expect(await first.ended).toMatchObject({ code: 0 });
  expect(processesNaming(root)).toEqual([]);
  await vi.waitFor(async () => expect(new Set(Object.values(await states()))).toEqual(new Set(["waiting"])), WAIT);
  for (const { charged } of await findActivations(queues, IDS)) expect(charged).toBe(0);
  for (const id of IDS.slice(0, 2)) {
    expect(await store.readAttempts(id)).toMatchObject([{ attempt: 0, charged: false, failure: { failure_kind: "shutdown" } }]);
  }

  released = true;
  const second = worker(4);
  await vi.waitFor(async () => {
    for (const id of IDS) expect(await store.readCommit(id), id).toMatchObject({ status: "completed" });
  }, WAIT);
  second.child.kill("SIGTERM");
  expect(await second.ended).toMatchObject({ code: 0 });
});
