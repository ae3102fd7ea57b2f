// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { FlowProducer, type FlowJob } from "bullmq";
import { expect, it, onTestFinished } from "vitest";
import { filesToPlace } from "../../src/artifacts/placed-files.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { completedOf, type Run } from "../queue/rig.ts";
import { asked, startApiRig, type ApiRig } from "./rig.ts";

const shaOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

function put(rig: ApiRig, sha256: string, body: Uint8Array | ReadableStream): Promise<Response> {
  return fetch(`${rig.api.origin}/v1/files/${sha256}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${rig.key}`, "content-type": "application/octet-stream" },
    body: body,
    duplex: "half",
  });
}

it("a large file is put once under its sha256, and an activation that names it gets exactly these bytes", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  const bytes = Buffer.alloc(6_000_000, "input "); // more than the limit of other requests
  const response = await put(rig, shaOf(bytes), bytes);
  expect([response.status, await response.json()]).toEqual([200, { artifact: `sha256:${shaOf(bytes)}` }]);
  expect((await put(rig, shaOf(bytes), bytes)).status).toBe(200);

  const files = [{ path: "in/data.bin", artifact: `sha256:${shaOf(bytes)}` }];
  expect((await rig.call("/v1/activations", { body: asked("act-1", { sandbox: { files } }) })).status).toBe(202);
  const placed: string[] = [];
  const run: Run = async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    for await (const file of filesToPlace(activation.sandbox.files, rig.store)) {
      const parts: Buffer[] = [];
      for await (const part of file.bytes) parts.push(Buffer.from(part as Buffer));
      placed.push(`${file.path} ${shaOf(Buffer.concat(parts))}`);
    }
    return { kind: "ended", ...(await rig.store.commit(completedOf(activation, generation, attempt))) };
  };
  await rig.worker(run);
  await rig.ended("act-1");
  expect(placed).toEqual([`in/data.bin ${shaOf(bytes)}`]);
});

it("a file with another sha256, or that is too large, is refused, and nothing of it is kept", async () => {
  const rig = await startApiRig({
    ports: { limits: { max_body_bytes: 1e6, max_file_bytes: 1_000, requests_per_second: 1e4, max_waiting: 10 } },
  });
  const bytes = Buffer.from("hello");
  expect((await put(rig, shaOf(Buffer.from("other")), bytes)).status).toBe(422);
  expect((await put(rig, shaOf(Buffer.alloc(2_000)), Buffer.alloc(2_000))).status).toBe(413);
  const untold = new ReadableStream({
    pull(controller) {
      controller.enqueue(Buffer.alloc(400)); // for ever, without a length
    },
  });
  const answer = await put(rig, shaOf(bytes), untold).then(
    ({ status }) => status,
    () => 413, // the connection is cut while the client still sends
  );
  expect(answer).toBe(413);
  for (const name of ["..%2f..%2fx", "0".repeat(63), "Z".repeat(64)]) expect((await put(rig, name, bytes)).status).toBe(422);
  expect(readdirSync(rig.storeRoot).flatMap((name) => (name === "_inputs" ? readdirSync(join(rig.storeRoot, name)) : []))).toEqual([]);
});

it("a foreign BullMQ producer gets its activation sealed, adds it itself, and it runs with its secrets", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  const { status, body } = await rig.call("/v1/seal", { body: asked("act-1", { model: { api_key: "sk-very-secret" } }) });
  expect(status).toBe(200);
  expect(JSON.stringify(body)).not.toContain("sk-very-secret");
  const flows = new FlowProducer({ connection: redisOptions(rig.redis.target, "command"), prefix: "{rollcall}" });
  onTestFinished(() => flows.close());
  await flows.add(body.flow as FlowJob);
  let key: string | undefined;
  await rig.worker(async ({ activation, generation, ledger }) => {
    key = activation.model.api_key;
    const { attempt } = await ledger.takeAttempt();
    return { kind: "ended", ...(await rig.store.commit(completedOf(activation, generation, attempt))) };
  });
  await rig.ended("act-1");
  expect(key).toBe("sk-very-secret");
  expect(await rig.call("/v1/seal", { body: asked("act-2", { max_attempts: 0 }) })).toMatchObject({
    status: 422,
    body: { code: "activation_refused", errors: [{ path: "max_attempts" }] },
  });
});
