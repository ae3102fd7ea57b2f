// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { filesHolding } from "../support/byte-search.ts";
import { cephMissing, startCeph } from "../support/ceph.ts";
import { startTestRedis } from "../support/redis.ts";
import { rollcall, startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it.skipIf(cephMissing)(
  "a run and its worker share nothing but Redis and a bucket; `collect` rebuilds the results from it; a worker with another prefix is refused [C4]",
  async () => {
    const root = tempDir();
    const ceph = await startCeph();
    onTestFinished(() => ceph.stop());
    const redis = await startTestRedis({ tcp: { password: "pw" } });
    onTestFinished(() => redis.stop());
    const model = await startModelServer({ apiKey: "k" });
    onTestFinished(() => model.close());
    const place = `s3://${await ceph.newBucket()}/batch`;
    const shared = {
      REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
      ROLLCALL_SECRET_KEY: randomBytes(32).toString("base64"),
      ROLLCALL_ARTIFACTS: place,
      ...ceph.env,
    };
    const producer = { ...shared, XDG_STATE_HOME: join(root, "producer") };
    const host = { ...shared, XDG_STATE_HOME: join(root, "host") };
    const worker = startRollcall([], {
      env: { ...host, OPENAI_API_KEY: "k", ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl },
      entry: "workers/activation.js",
    });
    onTestFinished(() => void worker.child.kill("SIGKILL"));
    await vi.waitFor(() => expect(worker.stderr()).toContain("worker started"), { timeout: 60_000 });

    const tasks = join(root, "tasks.jsonl");
    writeFileSync(tasks, ["a", "b"].map((id) => `${JSON.stringify({ id, input: "Say done." })}\n`).join(""));
    const out = join(root, "out");
    const run = await rollcall(["run", tasks, "--out", out, "--model", "m", "--model-base-url", model.captureBaseUrl], { env: producer });
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("2 completed") as string });
    const lines = readFileSync(join(out, "results.jsonl"), "utf8");
    const results = lines.trim().split("\n").map((line) => JSON.parse(line) as ActivationResult); // prettier-ignore
    const addresses = results.flatMap(({ artifacts }) => artifacts.map(({ uri }) => uri));
    expect(addresses).toContain(`${place}/${results[0]!.activation_id}/attempt-0/events.jsonl`);
    expect(addresses.filter((uri) => !uri.startsWith(`${place}/`))).toEqual([]);
    expect(existsSync(join(out, "artifacts"))).toBe(false);

    rmSync(join(out, "results.jsonl"));
    expect((await rollcall(["collect", "--out", out], { env: producer })).stderr).toContain("collected 2 results");
    expect(readFileSync(join(out, "results.jsonl"), "utf8").split("\n").sort()).toEqual(lines.split("\n").sort());

    const other = await rollcall([], { env: { ...host, ROLLCALL_ARTIFACTS: `${place}-2` }, entry: "workers/activation.js" });
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("must share one artifact store") as string });

    const checked = await rollcall(["doctor"], { env: producer });
    expect(checked.stdout).toMatch(/^ok +store +s3:\/\/\S+ at http:\S+, which keeps to conditional writes \(store-/m);
    const absent = await rollcall(["doctor"], { env: { ...producer, ROLLCALL_ARTIFACTS: "s3://no-such-bucket/p" } });
    expect(absent.stdout).toMatch(/^fail +store .*NoSuchBucket; HTTP 404; create the bucket first/m);
    expect(absent.code).toBe(1);

    const replayed = await rollcall(["replay", results[0]!.activation_id, "--out", out], { env: producer });
    expect(replayed).toMatchObject({ code: 2, stderr: expect.stringContaining(`the evidence is in ${place}`) as string });

    const { AWS_SECRET_ACCESS_KEY: secret } = ceph.env;
    expect(filesHolding(root, secret)).toEqual([]);
    expect(filesHolding(root, place)).not.toEqual([]); // the search finds what is there
    expect([worker.stderr(), run.stderr, other.stderr, checked.stdout, absent.stdout].filter((said) => said.includes(secret))).toEqual([]);
  },
  180_000,
);
