// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, shell, step } from "../../examples/stand-ins/script.ts";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { activationOf } from "../queue/rig.ts";
import { twoHosts, whyNoNamespaces, type Host, type Hosts } from "../support/namespaces.ts";
import { tempDir } from "../support/temp-dir.ts";

// Two workers on hosts of their own, real Codex, and a network that loses every packet between one of them and Redis.
const missing = whyNoNamespaces();
const LOCK_MS = 5_000;
const WAIT = { timeout: 90_000, interval: 50 };
const SECRET_KEY = randomBytes(32).toString("base64");

async function stage(onCall: (attempt: number) => void) {
  const root = tempDir();
  const store = join(root, "store");
  mkdirSync(join(root, "redis"));
  writeFileSync(
    join(root, "rollcall.toml"),
    `key_origins = { OPENAI_API_KEY = ["*"] }\n[queue]\nlock_duration_ms = ${LOCK_MS}\nlock_renew_ms = 1000\nstalled_interval_ms = 500\n[retry]\nbase_seconds = 1\n`,
  );
  const model = await startModelServer({
    apiKey: "k",
    scriptFor({ attempt, step: at, prompt }) {
      onCall(attempt);
      const long = prompt.includes("long") && attempt === 0;
      return { steps: long && at === 0 ? [step(shell("sleep 12; echo slept"))] : [step(shell("true")), step(say("Done."))] };
    },
  });
  onTestFinished(() => model.close());
  const hosts = await twoHosts(join(root, "redis"));
  onTestFinished(() => hosts.close());
  await hosts.relay(Number(new URL(model.url).port));
  const queues = openQueues(hosts.redis, { onError: () => undefined });
  onTestFinished(() => queues.close());
  return {
    hosts,
    model,
    store: await openDirectoryStore(store),
    worker: (host: Host) => startWorker(hosts, host, { root, store }),
    add: (id: string, input: string) =>
      enqueueActivations(queues, [activationOf(id, { input, model: { name: "m", base_url: model.captureBaseUrl } })], {
        keys: parseSecretKeys(SECRET_KEY),
      }),
  };
}

async function startWorker(hosts: Hosts, host: Host, { root, store }: { root: string; store: string }) {
  const [program, ...words] = [
    ...hosts.inside(host),
    process.execPath,
    "dist/workers/activation.js",
    "--config",
    join(root, "rollcall.toml"),
  ];
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: "/nonexistent",
    ROLLCALL_CONFIG: join(root, "rollcall.toml"),
    REDIS_URL: hosts.redisUrl(host),
    ROLLCALL_SECRET_KEY: SECRET_KEY,
    ROLLCALL_ARTIFACTS_DIR: store,
    ROLLCALL_STATE_DIR: join(root, `state-${host}`),
    OPENAI_API_KEY: "k",
  };
  const child = spawn(program, words, { stdio: ["ignore", "ignore", "pipe"], env });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  onTestFinished(async () => {
    if (child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const tooLate = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await ended;
    clearTimeout(tooLate);
  });
  await vi.waitFor(() => expect(log).toContain("worker"), WAIT);
  return { child, log: () => log };
}

async function called(model: ModelServer, captureKey: string): Promise<void> {
  await vi.waitFor(() => expect(model.log.countOf(captureKey)).toBeGreaterThan(0), WAIT);
}

describe.skipIf(missing !== null)(`a worker cut off from Redis${missing === null ? "" : ` (SKIPPED: ${missing})`}`, () => {
  it("for longer than its claim: its session is dead before the other worker's begins; one result; it works again afterwards [D1]", async () => {
    const alive: number[] = [];
    let hosts: Hosts | undefined;
    const rig = await stage((attempt) => {
      if (attempt === 1) alive.push(hosts!.processes("a", "codex").length);
    });
    hosts = rig.hosts;
    const first = await rig.worker("a");
    await rig.add("act-a", "a long task");
    await called(rig.model, "r-act-a");
    expect(hosts.processes("a", "codex").length).toBeGreaterThan(0);
    const second = await rig.worker("b");
    hosts.cut("a");
    await called(rig.model, "r-act-a-a1");
    const result = await vi.waitFor(async () => {
      const standing = await rig.store.readCommit("act-a");
      expect(standing).not.toBeNull();
      return standing!;
    }, WAIT);
    expect(alive.every((count) => count === 0)).toBe(true);
    expect(result).toMatchObject({ status: "completed", episode_id: { attempt: 1 } });
    expect(first.log()).toContain("cut off from Redis");

    hosts.heal("a");
    second.child.kill("SIGTERM");
    await once(second.child, "exit");
    await rig.add("act-b", "a short one");
    await vi.waitFor(async () => expect(await rig.store.readCommit("act-b")).toMatchObject({ status: "completed" }), WAIT);
    expect(await rig.store.readCommit("act-a")).toEqual(result);
  });

  it("for less than its claim: the session goes on, and nobody else begins it", async () => {
    const attempts = new Set<number>();
    const rig = await stage((attempt) => attempts.add(attempt));
    await rig.worker("a");
    await rig.add("act-a", "a long task");
    await called(rig.model, "r-act-a");
    await rig.worker("b");
    rig.hosts.cut("a");
    await new Promise((resolve) => setTimeout(resolve, LOCK_MS * 0.3));
    rig.hosts.heal("a");
    await vi.waitFor(async () => expect(await rig.store.readCommit("act-a")).toMatchObject({ status: "completed" }), WAIT);
    expect([...attempts]).toEqual([0]);
  });
});
