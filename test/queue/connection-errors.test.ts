// SPDX-License-Identifier: Apache-2.0
import { inspect } from "node:util";
import { expect, it, vi } from "vitest";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { createLogger } from "../../src/logging.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { startSentinel } from "../../src/queue/sentinel.ts";
import { LiveSecrets } from "../../src/redact/index.ts";
import { connectRedis } from "../../src/redis/connect.ts";
import { startTestRedis } from "../support/redis.ts";
import { tempDir } from "../support/temp-dir.ts";

const PASSWORD = "FAKE-password-of-redis-0815";

it("no connection, BullMQ's own included, tells the password of Redis in its errors [C8]", async () => {
  const redis = await startTestRedis({ tcp: { password: PASSWORD } });
  const errors: Error[] = [];
  const queues = openQueues(redis.target, { onError: (error) => errors.push(error) });
  const log = createLogger({ level: "silent", secrets: new LiveSecrets() });
  const sentinel = await startSentinel({ queues, store: await openDirectoryStore(tempDir()), log });
  const admin = connectRedis(redis.target, { role: "command", onError: () => undefined });
  try {
    // The server knows another password by now: AUTH fails on all connections, and ioredis hangs that command on its error.
    await admin.config("SET", "requirepass", "another-one");
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const told = (): string => inspect(errors, { depth: 8 });
    await vi.waitFor(() => expect(told().split("WRONGPASS").length).toBeGreaterThan(8), { timeout: 20_000 });
    expect(told()).not.toContain(PASSWORD);
    await admin.config("SET", "requirepass", PASSWORD);
  } finally {
    admin.disconnect();
    await sentinel.close({ graceMs: 0 });
    await queues.close();
    await redis.stop();
  }
});
