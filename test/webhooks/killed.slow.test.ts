// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { startRollcall, rollcall } from "../support/rollcall-command.ts";
import { startTestRedis } from "../support/redis.ts";
import { tempDir } from "../support/temp-dir.ts";
import { startReceiver, status } from "./receiver.ts";

const WAIT = { timeout: 60_000, interval: 50 };

it("a server killed between the delivery and its record: another one delivers again, under the same id, and nobody a third time", async () => {
  const root = tempDir();
  const redis = await startTestRedis({ tcp: { password: "pw" } });
  onTestFinished(() => redis.stop());
  const config = join(root, "rollcall.toml");
  writeFileSync(
    config,
    '[queue]\nlock_duration_ms = 2000\nlock_renew_ms = 500\nstalled_interval_ms = 500\n[webhooks]\nallow_hosts = ["127.0.0.1"]\ntimeout_seconds = 1\n',
  );
  const env = {
    REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
    ROLLCALL_SECRET_KEY: randomBytes(32).toString("base64"),
    ROLLCALL_ARTIFACTS_DIR: join(root, "artifacts"),
    ROLLCALL_STATE_DIR: join(root, "state"),
    ROLLCALL_CONFIG: config,
    ROLLCALL_API_KEY: "rck-of-this-test",
    ROLLCALL_API_PORT: "0",
  };
  const serve = async () => {
    const running = startRollcall([], { entry: "workers/api.js", env });
    onTestFinished(() => void running.child.kill("SIGKILL"));
    const url = await vi.waitFor(() => {
      const found = /listening on (\S+)/.exec(running.stdout())?.[1];
      expect(found, running.stderr()).toBeDefined();
      return found!;
    }, WAIT);
    return { ...running, url, client: createClient({ url, key: env.ROLLCALL_API_KEY }) };
  };

  const first = await serve();
  const receiver = await startReceiver((response, _request, before) => {
    if (before === 0) first.child.kill("SIGKILL"); // it has been told everything, and can record nothing
    else status(200)(response);
  });
  await first.client.putWebhook("w", { url: receiver.origin, secret: `whsec_${randomBytes(32).toString("base64")}` });
  const activation = {
    activation_id: "a",
    episode_id: { rollout_id: "a" },
    run_id: "r",
    task_id: { taskset: "t", task_id: "1" },
    input: "x",
    reply_to: null,
  };
  await first.client.enqueue([activation]);
  await first.client.cancelActivation("a"); // an end that needs no worker
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), WAIT);
  await first.ended;

  const second = await serve();
  const [one] = await vi.waitFor(async () => {
    const { webhooks } = await second.client.webhooks();
    expect(webhooks[0]!.counts).toEqual({ waiting: 0, sending: 0, sent: 1, dead: 0 });
    return webhooks;
  }, WAIT);
  expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual(Array(2).fill(receiver.received[0]!.headers["webhook-id"]));
  expect(JSON.parse(receiver.received[1]!.body)).toMatchObject({ type: "activation.cancelled", data: { activation_id: "a" } });

  const listed = await rollcall(["webhooks", "list", "--server", second.url], { env });
  expect([listed.code, JSON.parse(listed.stdout)]).toEqual([0, one]);
  const replayed = await rollcall(["webhooks", "replay", "w", "--server", second.url], { env });
  expect([replayed.code, JSON.parse(replayed.stdout)]).toEqual([0, { replayed: 0 }]);
  second.child.kill("SIGTERM");
  expect((await second.ended).code).toBe(0);
});
