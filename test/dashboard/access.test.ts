// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { appRoutes } from "@bull-board/api/dist/routes.js";
import { expect, it, vi } from "vitest";
import { asked, type ApiRig } from "../api/rig.ts";
import { completes } from "../queue/rig.ts";
import { KEYS, SAME_ORIGIN, startBoardRig } from "./signed-in.ts";

/** Every route that Bull Board has, with what is really there in its place. */
const API = appRoutes.api.flatMap(({ method, route }) =>
  [method]
    .flat()
    .flatMap((each) =>
      [route]
        .flat()
        .map((path): [method: string, path: string] => [
          each.toUpperCase(),
          path
            .replace(":queueName", "activations")
            .replace(":jobId", "act-1")
            .replace(":queueStatus", "completed")
            .replace(":schedulerId", "x"),
        ]),
    ),
);
const ENTRIES = [appRoutes.entryPoint.route]
  .flat()
  .map((path) => (path === "/" ? "" : path).replace(":queueName", "activations").replace(":jobId", "act-1"));
const WRITES = API.filter(([method]) => method !== "GET");
const READS = API.filter(([method]) => method === "GET").map(([, path]) => path);

function staticFiles(): string[] {
  const root = join(dirname(createRequire(import.meta.url).resolve("@bull-board/ui/package.json")), "dist/static");
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => `/static${join(parentPath, name).slice(root.length)}`);
}

async function statusWithHost(
  origin: string,
  path: string,
  method: string,
  host: string,
  headers: Record<string, string>,
): Promise<number> {
  const asking = request(origin, { path, method, headers: { host, ...headers } });
  asking.end();
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode!;
}

/** Of what somebody who acts through the board would change. */
async function queueState({ queues }: ApiRig): Promise<unknown> {
  const states = [];
  for (const queue of [queues.activations, queues.final, queues.results("results-a")]) {
    const { parents: _, ...job } = { parents: null, ...(await queues.redis.hgetall(queue.toKey("act-1"))) };
    states.push([await queue.getJobCounts(), await queue.isPaused(), await queue.getGlobalConcurrency(), job]);
  }
  return states;
}

it("every path of the dashboard answers 401 without a sign-in, refuses another Host, and changes nothing for anybody [C7, D10]", async () => {
  const { rig, cookies } = await startBoardRig();
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await rig.call("/v1/activations", { key: KEYS.admin, body: [asked("act-1", { reply_to: "results-a" }), asked("act-2")] });
  await rig.ended("act-1", 0, 60_000);
  await rig.ended("act-2", 0, 60_000);
  await rig.call("/v1/runs/run-2/pause", { key: KEYS.admin, method: "POST" });
  await vi.waitFor(async () => expect(await rig.queues.results("results-a").getWaitingCount()).toBe(1));
  const before = await queueState(rig);
  const { origin } = rig.api;
  const status = async (path: string, method: string, headers: Record<string, string>): Promise<number> => {
    const response = await fetch(`${origin}/dashboard${path}`, { method, headers, redirect: "manual" });
    await response.arrayBuffer();
    return response.status;
  };

  expect(API.length).toBeGreaterThan(30);
  const paths: [string, string][] = [
    ...API,
    ...[...ENTRIES, ...staticFiles(), "/", "", "/nothing", "/api/nothing"].map((path): [string, string] => ["GET", path]),
  ];
  for (const [method, path] of paths) {
    for (const headers of [{}, { authorization: "Bearer wrong" }, { cookie: "rollcall_sign_in=1.x.y" }, { ...SAME_ORIGIN, origin }])
      expect([method, path, await status(path, method, headers)]).toEqual([method, path, 401]);
    expect([
      method,
      path,
      await statusWithHost(origin, `/dashboard${path}`, method, "evil.example", { cookie: cookies.admin, ...SAME_ORIGIN }),
    ]).toEqual([method, path, 421]);
  }
  for (const path of ENTRIES) expect([path, await status(path, "GET", { accept: "text/html" })]).toEqual([path, 302]);

  for (const [method, path] of [...WRITES, ["DELETE", "/api/queues/activations/act-1"], ["POST", "/"]] as [string, string][]) {
    for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }, {}])
      expect([method, path, await status(path, method, { cookie: cookies.admin, ...headers })]).toEqual([method, path, 403]);
    for (const cookie of [cookies.read, cookies.enqueue, cookies.admin])
      expect([method, path, await status(path, method, { cookie, ...SAME_ORIGIN })]).toEqual([method, path, 405]);
    expect([method, path, await status(path, method, { authorization: `Bearer ${KEYS.admin}` })]).toEqual([method, path, 405]);
  }
  for (const path of [...READS, ...ENTRIES, ...staticFiles()])
    expect([path, await status(path, "GET", { cookie: cookies.read })]).toEqual([path, path.startsWith("/api/redis") ? 403 : 200]);
  expect(await queueState(rig)).toEqual(before);
}, 150_000);

it("what the board refuses says where it is done instead", async () => {
  const { board } = await startBoardRig();
  const refused = await board("/api/queues/pause", { method: "PUT", ...SAME_ORIGIN });
  expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  expect(await refused.json()).toMatchObject({
    code: "only_to_look_at",
    detail: expect.stringContaining("page of the activation") as string,
  });
});

it("pages name no other host, and are kept by no cache; files of the board are kept for a day", async () => {
  const { board } = await startBoardRig();
  const page = await board("", { accept: "text/html" });
  const html = await page.text();
  expect(html).toContain('<base href="/dashboard/" />');
  expect(html).not.toMatch(/(href|src)="(https?:)?\/\//);
  expect(html).not.toContain("googleapis");
  expect(page.headers.get("cache-control")).toBe("no-store");
  expect(page.headers.get("content-security-policy")).toContain("default-src 'self'");
  const [script] = /static\/js\/main[^"]+/.exec(html)!;
  const file = await board(`/${script}`);
  expect([file.status, file.headers.get("cache-control"), file.headers.get("content-type")]).toEqual([
    200,
    "private, max-age=86400",
    "text/javascript; charset=utf-8",
  ]);
  expect((await board("/static/..%2f..%2f..%2fpackage.json")).status).toBe(404);
});

it("while Redis is away the board says so, as the API does", async () => {
  const { rig, board } = await startBoardRig();
  await rig.redis.kill9();
  await vi.waitFor(async () => expect((await board("/api/queues")).status).toBe(503), { timeout: 30_000 });
  expect(await (await board("/api/queues")).json()).toMatchObject({ code: "redis_away" });
  await rig.redis.restart();
  await vi.waitFor(async () => expect((await board("/api/queues")).status).toBe(200), { timeout: 30_000 });
});
