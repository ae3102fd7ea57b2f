// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { completes } from "../queue/rig.ts";
import { requestsOf, type MadeRequest, type OpenApiDocument } from "./requests-of.ts";
import { asked, startApiRig, type ApiRig } from "./rig.ts";

/** The status and the problem's code. Streams are opened and left. */
async function ask(rig: ApiRig, { method, path, headers, body }: MadeRequest): Promise<{ status: number; code: string | null }> {
  const response = await fetch(rig.api.origin + path, {
    method,
    headers: { authorization: `Bearer ${rig.key}`, "content-type": "application/json", ...headers },
    signal: AbortSignal.timeout(30_000),
    ...(body === undefined || method === "GET" ? {} : { body: JSON.stringify(body) ?? "" }),
  });
  const type = response.headers.get("content-type") ?? "";
  if (response.status < 400) {
    await response.body?.cancel();
    return { status: response.status, code: null };
  }
  expect(type).toBe("application/problem+json");
  const problem = (await response.json()) as { code: string; status: number; request_id: string };
  expect(problem).toMatchObject({ status: response.status, request_id: expect.any(String) as string });
  return { status: response.status, code: problem.code };
}

it("requests made from the document, right and wrong ones, are answered without a fault of ours and without a hang", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await rig.call("/v1/activations", { body: ["a", "b"].map((id) => asked(id, { reply_to: "results" })) });
  const { body: document } = await rig.call("/openapi.json");
  await fc.assert(
    fc.asyncProperty(requestsOf(document as OpenApiDocument), async (made) => {
      const { status, code } = await ask(rig, made);
      expect([status, code]).toSatisfy(() => status < 500 || code === "too_many_waiting");
    }),
    { numRuns: 400 },
  );
  expect((await rig.call("/v1/activations/a")).status).toBe(200);
}, 240_000);

const DEEP = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
const BAD: [name: string, method: string, path: string, body: string | undefined, status: number][] = [
  ["nothing at all", "POST", "/v1/activations", "", 400],
  ["half of a JSON", "POST", "/v1/activations", '{"a":', 400],
  ["null", "POST", "/v1/activations", "null", 422],
  ["a number", "POST", "/v1/activations", "1", 422],
  ["an empty list", "POST", "/v1/activations", "[]", 422],
  ["more than 1,000", "POST", "/v1/activations", JSON.stringify(Array.from({ length: 1_001 }, () => ({}))), 422],
  ["lists in lists", "POST", "/v1/activations", "[[[]]]", 422],
  ["100,000 lists in each other", "POST", "/v1/activations", DEEP, 422],
  ["a prototype", "POST", "/v1/activations", '{"__proto__":{"activation_id":"x"},"constructor":{}}', 422],
  ["an id that leads out", "POST", "/v1/activations", JSON.stringify(asked("../../x")), 422],
  ["an id with a colon", "POST", "/v1/activations", JSON.stringify(asked("a:b")), 422],
  ["an id twice", "POST", "/v1/activations", JSON.stringify([asked("a"), asked("a")]), 422],
  ["a NUL in the input", "POST", "/v1/activations", JSON.stringify(asked("n", { input: "a\0b" })), 202],
  [
    "a lone surrogate",
    "POST",
    "/v1/activations",
    '{"activation_id":"s","run_id":"r","task_id":{"taskset":"t","task_id":"\\ud800"},"input":"x"}',
    202,
  ],
  ["another queue's name", "POST", "/v1/results/claim", '{"queue":"activations"}', 422],
  ["no lease", "POST", "/v1/results/claim", '{"lease_seconds":0}', 422],
  ["a lease for ever", "POST", "/v1/results/claim", '{"lease_seconds":1e300}', 422],
  ["a receipt that is none", "POST", "/v1/results/ack", '{"results":[{"result_id":"a","receipt":"x"}]}', 422],
  [
    "a result that is a key of the queue",
    "POST",
    "/v1/results/ack",
    `{"results":[{"result_id":"wait","receipt":"${crypto.randomUUID()}"}]}`,
    200,
  ],
  ["a wait of a string", "GET", "/v1/activations/a/result?wait=soon", undefined, 422],
  ["a wait for ever", "GET", "/v1/activations/a/result?wait=Infinity", undefined, 422],
  ["a run that leads out", "GET", "/v1/runs/..%2f..%2fx", undefined, 422],
  ["a cursor that is none", "GET", "/v1/runs/r/results?cursor=x", undefined, 422],
  ["partial that is no boolean", "POST", "/v1/activations?partial=maybe", "[]", 422],
  ["a method that is none of the route", "PATCH", "/v1/activations/a", "{}", 404],
  ["a percent sign alone", "GET", "/v1/activations/%", undefined, 422],
];

it("bad input is answered for what it is", async () => {
  const rig = await startApiRig();
  await rig.queues.redis.sadd("{rollcall}:result-queues", "results");
  await rig.queues.redis.lpush("{rollcall}:results:wait", "nothing");
  for (const [name, method, path, body, status] of BAD) {
    const answer = await rig.call(path, { method, ...(body === undefined ? {} : { body }) });
    const code = status < 400 ? {} : { status, code: expect.any(String) as string };
    expect([name, answer.status, answer.body]).toEqual([name, status, expect.objectContaining(code)]);
  }
});
