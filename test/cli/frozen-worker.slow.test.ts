// SPDX-License-Identifier: Apache-2.0
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, vi, type TestContext } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, step } from "../../examples/stand-ins/script.ts";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { activationOf } from "../queue/rig.ts";
import { startTestRedis } from "../support/redis.ts";
import { startRollcall, type RunningCommand } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

// Real workers and real Codex. The first session's model never answers, so that it lives until somebody ends it.
const WAIT = { timeout: 90_000, interval: 50 };
const LOCK_MS = 4_000;
/** These tests run at once, and vitest's own hook would put what one opens at the end of another. */
type Own = Pick<TestContext, "onTestFinished">;
const SECRET_KEY = randomBytes(32).toString("base64");

/** On SIGUSR2 the event loop stands still until a file exists, as it would in a synchronous loop. */
const blocksUntil = (file: string): string =>
  `import { existsSync } from "node:fs";
   const wait = new Int32Array(new SharedArrayBuffer(4));
   process.on("SIGUSR2", () => { while (!existsSync(${JSON.stringify(file)})) Atomics.wait(wait, 0, 0, 50); });`;

/** A model server that knows which sessions talk to it: `live` at present, `most` at once so far. */
async function watchedModel({ onTestFinished }: Own) {
  const model = await startModelServer({
    apiKey: "k",
    scriptFor: ({ attempt }) => ({ steps: [{ ...step(say("Done.")), ...(attempt === 0 ? { fault: { kind: "hang" as const } } : {}) }] }),
  });
  const live = new Map<string, number>();
  const seen = { live, most: 0 };
  function relay(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const session = /ng-rollout\/([^/]+)\//.exec(incoming.url ?? "")?.[1] ?? "unknown";
    live.set(session, (live.get(session) ?? 0) + 1);
    seen.most = Math.max(seen.most, live.size);
    const onward = request(
      new URL(incoming.url ?? "", model.url),
      { method: incoming.method ?? "GET", headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(outgoing);
      },
    );
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => {
      onward.destroy();
      const left = live.get(session)! - 1;
      if (left > 0) live.set(session, left);
      else live.delete(session);
    });
    incoming.pipe(onward);
  }
  const server = createServer(relay).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await model.close();
  });
  return { seen, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ng-rollout/{capture_key}/v1` };
}

async function stage(own: Own) {
  const { onTestFinished } = own;
  const root = tempDir(onTestFinished);
  const redis = await startTestRedis({ tcp: { password: "pw" } });
  onTestFinished(() => redis.stop());
  const model = await watchedModel(own);
  const config = join(root, "rollcall.toml");
  writeFileSync(
    config,
    `key_origins = { OPENAI_API_KEY = ["*"] }\n[queue]\nlock_duration_ms = ${LOCK_MS}\nlock_renew_ms = 1000\nstalled_interval_ms = 500\n`,
  );
  const wakes = join(root, "wake-up");
  writeFileSync(join(root, "blocks.mjs"), blocksUntil(wakes));
  const store = join(root, "store");
  const queues = openQueues(redis.target, { onError: () => undefined });
  onTestFinished(() => queues.close());

  async function worker(host: string): Promise<RunningCommand> {
    const env = {
      ROLLCALL_CONFIG: config,
      NODE_OPTIONS: `--import ${join(root, "blocks.mjs")}`,
      REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
      ROLLCALL_SECRET_KEY: SECRET_KEY,
      ROLLCALL_ARTIFACTS_DIR: store,
      ROLLCALL_STATE_DIR: join(root, host),
      OPENAI_API_KEY: "k",
    };
    const started = startRollcall([], { env, entry: "workers/activation.js" });
    onTestFinished(() => end(started.child));
    await vi.waitFor(() => expect(started.stderr()).toContain("worker started"), WAIT);
    return started;
  }
  const sandboxesOf = (host: string): string[] =>
    readdirSync(join(root, host, "worker", "sandboxes")).filter((name) => !name.startsWith("."));
  return { model, worker, wakes, queues, sandboxesOf, store: await openDirectoryStore(store) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGCONT");
  child.kill("SIGTERM");
  const tooLate = setTimeout(() => child.kill("SIGKILL"), 15_000);
  await ended;
  clearTimeout(tooLate);
}

/** Stands still for longer than its claim; goes on. */
const STANDSTILLS: Record<string, { begin: (child: ChildProcess) => void; end: (child: ChildProcess, wakes: string) => void }> = {
  "is stopped (SIGSTOP)": { begin: (child) => child.kill("SIGSTOP"), end: (child) => child.kill("SIGCONT") },
  "has a blocked event loop": { begin: (child) => child.kill("SIGUSR2"), end: (_, wakes) => writeFileSync(wakes, "") },
};

describe("a worker that stands still for longer than its claim while Codex runs", () => {
  it.concurrent.for(
    Object.entries(STANDSTILLS).flatMap(([how, still]) => [
      [how, "the same host", { still, other: "a", most: 1 }] as const,
      [how, "another host", { still, other: "b", most: 2 }] as const,
    ]),
  )(
    "and %s: a second worker on %s runs it under another number, the first one's Codex is killed, and there is one result [D1]",
    async ([, , { still, other, most }], context) => {
      const rig = await stage(context);
      const { seen } = rig.model;
      const first = await rig.worker("a");
      const activation = activationOf("act-a", { reply_to: "results", model: { name: "m", base_url: rig.model.baseUrl } });
      await enqueueActivations(rig.queues, [activation], { keys: parseSecretKeys(SECRET_KEY) });
      await vi.waitFor(() => expect([...seen.live.keys()]).toEqual(["r-act-a"]), WAIT);
      await rig.worker(other);

      still.begin(first.child);
      const result = await vi.waitFor(async () => {
        const standing = await rig.store.readCommit("act-a");
        expect(standing).not.toBeNull();
        return standing!;
      }, WAIT);
      expect(result).toMatchObject({ status: "completed", episode_id: { attempt: 1 } });
      expect(result.attempts).toMatchObject([
        { attempt: 0, charged: true, failure: { cause_code: "session_lost" } },
        { attempt: 1, status: "completed" },
      ]);
      expect(seen.most).toBe(most); // what one host promises, and two cannot
      expect(seen.live.has("r-act-a")).toBe(most === 2);

      still.end(first.child, rig.wakes);
      await vi.waitFor(() => {
        expect([...seen.live.keys()]).toEqual([]);
        expect(rig.sandboxesOf("a")).toEqual([]);
      }, WAIT);
      await vi.waitFor(async () => expect(await rig.queues.results("results").getJobCounts("waiting")).toEqual({ waiting: 1 }), WAIT);
      expect(await rig.store.readCommit("act-a")).toEqual(result);
      await vi.waitFor(async () => {
        const [own] = await rig.store.readAttempts("act-a"); // its own word, too late for the result
        expect(own).toMatchObject({ attempt: 0, charged: false, failure: { cause_code: "lock_lost" } });
      }, WAIT);
      expect(seen.most).toBe(most);
      expect(first.child.exitCode).toBeNull();
    },
  );
});
