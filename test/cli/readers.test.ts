// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { announceEnd } from "../../src/queue/ended.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { activationOf } from "../queue/rig.ts";
import { startTestRedis } from "../support/redis.ts";
import { resultOf } from "../support/result-documents.ts";
import { startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it.each([
  ["watch", ["run-1"]],
  ["results", ["run-1", "--follow"]],
  ["status", ["run-1"]],
  ["schema", ["activation"]],
])("%s whose reader is gone ends quietly, as with `| head` [fault D4]", async (command, args) => {
  const root = tempDir();
  const redis = await startTestRedis({ tcp: { password: "pw" } });
  onTestFinished(() => redis.stop());
  const key = randomBytes(32).toString("base64");
  const queues = openQueues(redis.target, { onError: () => undefined });
  onTestFinished(() => queues.close());
  const store = await openDirectoryStore(join(root, "store"));
  const ids = ["act-a", "act-b"];
  await enqueueActivations(
    queues,
    ids.map((id) => activationOf(id, { run_id: "run-1" })),
    { keys: parseSecretKeys(key) },
  );
  const ended = resultOf("act-a", { run_id: "run-1" });
  await store.commit(ended);
  await announceEnd(queues, ended); // one has ended, the other never does: who follows would wait for ever
  const env = {
    REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
    ROLLCALL_SECRET_KEY: key,
    ROLLCALL_ARTIFACTS_DIR: join(root, "store"),
    ROLLCALL_STATE_DIR: join(root, "state"),
  };
  const running = startRollcall([command, ...args], { env });
  onTestFinished(() => void running.child.kill("SIGKILL"));
  running.child.stdout!.destroy();
  const { code, stderr } = await running.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
});
