// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { createClient, type Client } from "../../src/client/index.ts";
import { OPERATIONS } from "../../src/client/operations.ts";
import { RollcallError } from "../../src/errors.ts";
import { startApiRig, asked, type ApiRig } from "../api/rig.ts";
import { completedOf, completes } from "../queue/rig.ts";
import { tempDir } from "../support/temp-dir.ts";

const activation = (id: string, more: Record<string, unknown> = {}) => asked(id, more) as never;
const clientOf = (rig: ApiRig, more: Partial<Parameters<typeof createClient>[0]> = {}): Client =>
  createClient({ url: rig.api.origin, key: rig.key, ...more });

/** Between the client and the server; `cut` sees each request and may end it instead, or its answer after some bytes. */
async function relay(
  to: string,
  cut: (request: IncomingMessage, response: ServerResponse) => "pass" | "done" | { afterBytes: number },
): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const how = cut(incoming, outgoing);
    if (how === "done") return;
    const onward = request(new URL(incoming.url!, to), { method: incoming.method!, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        const most = how === "pass" ? Number.POSITIVE_INFINITY : how.afterBytes;
        if (bytes >= most) return;
        outgoing.write(chunk.subarray(0, most - bytes));
        bytes += chunk.length;
        // What was written is read first: a body that fails gives up what nobody has taken yet.
        if (bytes >= most) setTimeout(() => outgoing.destroy(), 100);
      });
      answer.on("end", () => (how === "pass" || bytes < how.afterBytes) && outgoing.end());
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("has one function for each operation of the OpenAPI document, and none that is not in it", async () => {
  const rig = await startApiRig();
  const { paths } = (await rig.call("/openapi.json", { key: null })).body as { paths: Record<string, Record<string, unknown>> };
  const documented = Object.entries(paths)
    .filter(([path]) => path.startsWith("/v1/"))
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`));
  expect(
    Object.values(OPERATIONS)
      .map((words) => words.join(" "))
      .toSorted(),
  ).toEqual(documented.toSorted());
  expect(Object.keys(clientOf(rig)).toSorted()).toEqual(Object.keys(OPERATIONS).toSorted());
});

it("takes a run from its activations to their results, and everything else that the API does", async () => {
  const rig = await startApiRig();
  const client = clientOf(rig);
  expect(await client.run("run-1").catch((error: unknown) => error)).toMatchObject({ status: 404, code: "run_unknown" });
  expect(await client.setBreaker("run-1", "stop")).toEqual({ open: null, openings: [] });
  const { activations } = await client.enqueue([activation("act-1"), activation("act-2"), activation("act-3")]);
  expect(activations.map(({ outcome }) => outcome)).toEqual(["added", "added", "added"]);
  expect(await client.pauseRun("run-1", { reason: "look" })).toEqual({ run_id: "run-1", paused: true, changed: true });
  expect(await client.run("run-1")).toMatchObject({
    total: 3,
    waiting: 3,
    paused: { reason: "look" },
    budget: { max_tokens: null, spent: null },
  });
  expect(await client.setBudget("run-1", { max_tokens: 5, used: { model_calls: 0, tokens: 5 } })).toMatchObject({ spent: "max_tokens" });
  expect((await client.run("run-1")).budget).toMatchObject({ max_tokens: 5, used: { tokens: 5 }, spent: "max_tokens" });
  expect(await client.setBudget("run-1", {})).toMatchObject({ max_tokens: null, spent: null });
  expect(await client.cancelActivation("act-3", { reason: "no" })).toMatchObject({ state: "waiting", outcome: "done" });
  expect(await client.result("act-1")).toBeNull();
  await client.resumeRun("run-1");
  await rig.sentinel();
  await rig.worker(completes(rig.store));

  expect(await client.result("act-1", { wait: 60 })).toMatchObject({ activation_id: "act-1", status: "completed" });
  const lines = [];
  for await (const line of client.results("run-1", { follow: true })) lines.push(line);
  const ends = lines.map(({ activation_id, status }) => `${activation_id} ${status}`);
  expect(ends.toSorted()).toEqual(["act-1 completed", "act-2 completed", "act-3 cancelled"]);
  expect(lines.every(({ result, activation_id }) => result?.activation_id === activation_id)).toBe(true);
  const after = [];
  for await (const line of client.results("run-1", { cursor: lines[0]!.cursor, bare: true })) after.push(line);
  expect(after.map(({ cursor, result }) => [cursor, result])).toEqual(lines.slice(1).map(({ cursor }) => [cursor, null]));
  const rows = [];
  for await (const row of client.rows("run-1", { cursor: lines[0]!.cursor })) rows.push(row);
  expect(rows.map((row) => row.state === "ended" && row.cursor)).toEqual(lines.slice(1).map(({ cursor }) => cursor));
  expect((await client.runs({ limit: 1 })).runs).toMatchObject([{ run_id: "run-1", open: 0, ended: 3, with_failure: 1 }]);
  expect(await client.story("act-1")).toMatchObject({ ending: { status: "completed" }, now: { state: "ended" } });
  const stages = [];
  for await (const { stage } of client.events("act-1")) stages.push(stage);
  expect(stages.at(-1)).toBe("ended");

  expect((await client.activations(["act-1", "act-9"])).activations.map(({ state }) => state)).toEqual(["ended", "unknown"]);
  expect((await client.cancelActivations(["act-1"])).activations).toMatchObject([{ state: "ended", outcome: "nothing" }]);
  expect((await client.workers({ run_id: "run-1" })).workers).toMatchObject([{ host: "test", running: 0 }]);
  expect(await client.retryRun("run-1", { status: "completed" })).toMatchObject({ queued_again: 2 });
  expect(await client.cancelRun("run-1")).toMatchObject({ run_id: "run-1" });
  expect(await client.retryActivation("act-3")).toMatchObject({ state: "ended", outcome: "impossible", why: "job_removed" });
  expect(await client.enqueue([activation("act-3")], { again: true })).toMatchObject({ activations: [{ outcome: "added" }] });
  expect(await client.result("act-3", { wait: 60 })).toMatchObject({ generation: 1, status: "completed" });
  expect(await client.seal(activation("act-4"))).toMatchObject({ activation_id: "act-4" });
});

it("brings results for consumers, and files in both directions", async () => {
  const rig = await startApiRig();
  const client = clientOf(rig);
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await client.enqueue([activation("act-1", { reply_to: "results-c" })]);
  const { results } = await client.claimResults({ queue: "results-c", wait: 30, lease_seconds: 60 });
  expect(results).toMatchObject([{ result_id: "act-1", delivery: 1 }]);
  expect((await client.resultQueues()).queues).toMatchObject([{ queue: "results-c", claimed: 1 }]);
  const [{ result_id, receipt }] = results as [(typeof results)[number]];
  expect(await client.ackResults({ queue: "results-c", results: [{ result_id, receipt }] })).toEqual({
    results: [{ result_id, outcome: "acked" }],
  });

  const file = join(tempDir(), "in.csv");
  writeFileSync(file, "a,b\n");
  const sha256 = createHash("sha256").update("a,b\n").digest("hex");
  expect(await client.putFile(sha256, file)).toEqual({ artifact: `sha256:${sha256}` });
  await rig.store.put("act-1", 0, "outputs/a b/ü.txt", (await import("node:stream")).Readable.from([Buffer.from("0123456789")]), {
    kind: "output",
    source: "ü.txt",
    quarantined: false,
  });
  expect(await text(await client.artifact("act-1", 0, "outputs/a b/ü.txt"))).toBe("0123456789");
  expect(await text(await client.artifact("act-1", 0, "outputs/a b/ü.txt", { range: { start: 2, end: 4 } }))).toBe("234");
});

it("says what the server does not accept, by its fields; and what cannot be reached, by its address; never the key", async () => {
  const rig = await startApiRig();
  const refused = await clientOf(rig)
    .enqueue([activation("act-1", { input: 7 })])
    .catch((error: unknown) => error as Error);
  expect(refused).toMatchObject({ status: 422, code: "activation_refused", exitCode: 2 });
  expect(refused).toMatchObject({ message: expect.stringMatching(/^POST \/v1\/activations: .*\[0\]\.input.*\(request /) });
  expect(
    await clientOf(rig, { key: "wrong-key" })
      .run("r")
      .catch((error: unknown) => error),
  ).toMatchObject({ status: 401 });
  await rig.api.stop();
  const away = await clientOf(rig, { retry_seconds: 0 })
    .run("r")
    .catch((error: unknown) => error as Error);
  expect(away).toMatchObject({ code: "server_unreachable", message: expect.stringContaining(rig.api.origin) });
  expect(inspect([away, refused], { depth: 9 })).not.toContain(rig.key);
  expect(() => createClient({ url: "localhost:8080", key: "k" })).toThrow(RollcallError);
});

it("asks again when the server is busy, lost its queue or the connection, but not what would then be done twice", async () => {
  const rig = await startApiRig();
  const seen: string[] = [];
  const url = await relay(rig.api.origin, (incoming, outgoing) => {
    seen.push(`${incoming.method} ${incoming.url!.split("?")[0]}`);
    if (seen.length === 1) outgoing.writeHead(503, { "retry-after": "0" }).end("not json");
    else if (seen.length === 2 || /claim/.test(incoming.url!)) incoming.socket.destroy();
    else return "pass";
    return "done";
  });
  const client = clientOf(rig, { url });
  expect(await client.enqueue([activation("act-1")])).toMatchObject({ activations: [{ outcome: "added" }] });
  expect(seen).toEqual(Array.from({ length: 3 }, () => "POST /v1/activations"));
  await expect(client.claimResults({ queue: "results" })).rejects.toMatchObject({ code: "server_unreachable" });
  expect(seen.slice(3)).toEqual(["POST /v1/results/claim"]);
  const stop = new AbortController();
  stop.abort(new Error("told to stop"));
  await expect(client.run("run-1", { signal: stop.signal })).rejects.toThrow("told to stop");
});

it("goes on where a stream of results or events was cut off, without a line lost", async () => {
  const rig = await startApiRig();
  /** What was read last, and what each request went on after. */
  const last = { results: "0", events: "0" };
  const asked: { what: string; after: string; read: string }[] = [];
  const url = await relay(rig.api.origin, (incoming) => {
    const { pathname, searchParams } = new URL(incoming.url!, rig.api.origin);
    const what = pathname.split("/").at(-1);
    if (what !== "results" && what !== "events") return "pass";
    const isFirst = asked.every((each) => each.what !== what);
    asked.push({ what, after: searchParams.get("cursor") ?? String(incoming.headers["last-event-id"] ?? "0"), read: last[what] });
    return isFirst ? { afterBytes: what === "results" ? 1_500 : 200 } : "pass";
  });
  const client = clientOf(rig, { url });
  await rig.sentinel();
  await rig.worker(async ({ activation: one, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    for (const stage of ["starting", "running", "collecting"] as const) ledger.progress({ stage, attempt, note: one.activation_id });
    return { kind: "ended", ...(await rig.store.commit(completedOf(one, generation, attempt))) };
  });
  const ids = Array.from({ length: 12 }, (_, n) => `act-${n}`);
  await client.enqueue(ids.map((id) => activation(id)));
  const found = new Map<string, string>();
  for await (const { activation_id, cursor, result } of client.results("run-1", { follow: true })) {
    expect(result?.activation_id).toBe(activation_id);
    found.set(activation_id, cursor);
    last.results = cursor;
  }
  expect([...found.keys()].toSorted()).toEqual(ids.toSorted());
  const events: string[] = [];
  for await (const { id } of client.events("act-1")) {
    events.push(id);
    last.events = id;
  }
  expect(new Set(events).size).toBe(events.length);

  for (const { what, after, read } of asked) expect(after, what).toBe(read);
  for (const each of ["results", "events"])
    expect(
      asked.some(({ what, after }) => what === each && after !== "0"),
      each,
    ).toBe(true);
});
