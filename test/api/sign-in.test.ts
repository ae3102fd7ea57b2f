// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { expect, it, vi } from "vitest";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { hashApiKey, openApiKeys } from "../../src/api/api-keys.ts";
import { nextPath } from "../../src/api/next-path.ts";
import { isSameOrigin } from "../../src/api/same-origin.ts";
import { tempDir } from "../support/temp-dir.ts";
import { startApiRig, type ApiRig } from "./rig.ts";

const SAME = { "sec-fetch-site": "same-origin" };

/** Sends the form as a browser does, and follows nothing. */
function signIn(origin: string, key: string, headers: Record<string, string> = SAME, next?: string): Promise<Response> {
  const body = new URLSearchParams({ key, ...(next === undefined ? {} : { next }) });
  return fetch(`${origin}/sign-in`, { method: "POST", headers, body, redirect: "manual" });
}

function cookieOf(answer: Response): string {
  return answer.headers.get("set-cookie")!.split(";")[0]!;
}

async function asks(origin: string, path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
  return fetch(origin + path, { method, headers, redirect: "manual" });
}

async function withKeys(lines: string): Promise<{ rig: ApiRig; file: string }> {
  const file = join(tempDir(), "keys");
  writeFileSync(file, lines);
  const rig = await startApiRig({ ports: { apiKeys: await openApiKeys({ single: null, file, onProblem: () => undefined }) } });
  return { rig, file };
}

it("a key signs a browser in: the cookie is for this server alone, holds no key, and serves the API and the pages of every process", async () => {
  const lines: string[] = [];
  const rig = await startApiRig({ ports: { log: pino({ level: "info" }, { write: (line: string) => void lines.push(line) }) } });
  const answer = await signIn(rig.api.origin, rig.key, SAME, "/dashboard/queue/final?a=1");
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/dashboard/queue/final?a=1"]);
  expect(answer.headers.get("set-cookie")).toMatch(/^rollcall_sign_in=[^;]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/);
  const cookie = cookieOf(answer);
  const decoded = decodeURIComponent(cookie);
  for (const part of [
    rig.key,
    hashApiKey(rig.key).slice("sha256:".length),
    Buffer.from(hashApiKey(rig.key).slice(7), "hex").toString("base64url"),
  ])
    expect(decoded).not.toContain(part);
  const other = await rig.serve();
  for (const origin of [rig.api.origin, other.origin]) {
    expect((await asks(origin, "/v1/results/queues", { cookie })).status).toBe(200);
    expect((await asks(origin, "/dashboard/nothing-here", { cookie })).status).toBe(404);
  }
  expect(lines.join("")).not.toContain(rig.key);
  expect(lines.join("")).not.toContain(cookie.split("=")[1]);
});

it("a cookie that came by https, or where the settings say so, goes over https only", async () => {
  const rig = await startApiRig();
  const behindTls = await signIn(rig.api.origin, rig.key, { ...SAME, "x-forwarded-proto": "https" });
  expect(behindTls.headers.get("set-cookie")).toContain("; Secure");
  const strict = await rig.serve({ signIn: { hours: 1, secure: true } });
  expect((await signIn(strict.origin, rig.key)).headers.get("set-cookie")).toMatch(/Max-Age=3600;.*; Secure/);
});

it("a page asked for by a browser that has not signed in leads to the form and back; anything else gets 401 [C7]", async () => {
  const rig = await startApiRig();
  const { origin } = rig.api;
  const page = await asks(origin, "/dashboard/queue/x?page=2", { accept: "text/html,*/*;q=0.8" });
  expect([page.status, page.headers.get("location")]).toEqual([302, "/sign-in?next=%2Fdashboard%2Fqueue%2Fx%3Fpage%3D2"]);
  for (const [method, accept] of [
    ["GET", "*/*"],
    ["GET", "application/json"],
    ["POST", "text/html"],
    ["PUT", "text/html"],
  ] as const)
    expect([method, (await asks(origin, "/dashboard/queue/x", { accept }, method)).status]).toEqual([method, 401]);

  const form = await asks(origin, page.headers.get("location")!);
  const text = await form.text();
  expect(form.status).toBe(200);
  expect(form.headers.get("cache-control")).toBe("no-store");
  expect(text).toContain('name="next" value="/dashboard/queue/x?page=2"');
  expect(text).not.toMatch(/https?:\/\//);
  expect(await (await asks(origin, "/sign-in/state")).json()).toEqual({ signed_in: false });

  const cookie = cookieOf(await signIn(origin, rig.key));
  expect(await (await asks(origin, "/sign-in/state", { cookie })).json()).toEqual({ signed_in: true });
  const again = await asks(origin, "/sign-in?next=%2Fdashboard%2Fqueue%2Fx", { cookie });
  expect([again.status, again.headers.get("location")]).toEqual([302, "/dashboard/queue/x"]);
  const signedOut = await asks(origin, "/sign-out", { ...SAME, cookie }, "POST");
  expect([signedOut.status, signedOut.headers.get("set-cookie")]).toEqual([
    303,
    expect.stringMatching(/^rollcall_sign_in=; Max-Age=0; Path=\//),
  ]);
});

it("what a cookie alone asks to be changed must come from a page of this server; a key needs no such page [C7]", async () => {
  const rig = await startApiRig();
  const { origin } = rig.api;
  const cookie = cookieOf(await signIn(origin, rig.key));
  const pause = async (headers: Record<string, string>): Promise<number> =>
    (await asks(origin, "/v1/runs/r/pause", headers, "POST")).status;
  for (const headers of [
    {},
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: `${origin}.evil.example` },
    { origin: origin.replace(/\d+$/, "1") },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none", origin },
  ])
    expect([headers, await pause({ cookie, ...headers })]).toEqual([headers, 403]);
  for (const headers of [SAME, { origin }, { ...SAME, origin }])
    expect([headers, await pause({ cookie, ...headers })]).toEqual([headers, 404]);
  expect(await pause({ authorization: `Bearer ${rig.key}`, origin: "https://evil.example" })).toBe(404);
  expect(await pause({ cookie, authorization: "Bearer wrong", ...SAME })).toBe(401);
  expect((await signIn(origin, rig.key, { origin: "https://evil.example" })).status).toBe(403);
  expect((await asks(origin, "/sign-out", { cookie, origin: "https://evil.example" }, "POST")).status).toBe(403);
});

it("a sign-in may do what its key may at that time, and nothing once the key is taken away, its time is over, or its signature is another's", async () => {
  const { rig, file } = await withKeys(`me enqueue ${hashApiKey("first")}\n`);
  const { origin } = rig.api;
  const cookie = cookieOf(await signIn(origin, "first"));
  const look = async (value = cookie): Promise<number> => (await asks(origin, "/v1/results/queues", { cookie: value })).status;
  const act = async (): Promise<number> => (await asks(origin, "/v1/runs/r/pause", { cookie, ...SAME }, "POST")).status;
  expect([await look(), await act()]).toEqual([200, 404]);
  for (const changed of [
    cookie.replace(/=\d/, "=9"),
    `${cookie}x`,
    cookie.replace(/.{6}$/, "AAAAA="),
    "rollcall_sign_in=9999999999.x",
    "rollcall_sign_in=",
  ])
    expect([changed, await look(changed)]).toEqual([changed, 401]);

  const others = await rig.serve({ keys: parseSecretKeys(Buffer.alloc(32, 9).toString("base64")) });
  expect((await asks(others.origin, "/v1/results/queues", { cookie })).status).toBe(401);
  const rotated = await rig.serve({ keys: parseSecretKeys([9, 7].map((byte) => Buffer.alloc(32, byte).toString("base64")).join(",")) });
  expect((await asks(rotated.origin, "/v1/results/queues", { cookie })).status).toBe(200);
  const short = await rig.serve({ signIn: { hours: 1 / 3_600, secure: false } });
  const brief = cookieOf(await signIn(short.origin, "first"));
  await vi.waitFor(async () => expect(await look(brief)).toBe(401), { timeout: 20_000, interval: 200 });

  writeFileSync(file, `me read ${hashApiKey("first")}\n`);
  await vi.waitFor(async () => expect([await look(), await act()]).toEqual([200, 403]), { timeout: 20_000, interval: 200 });
  writeFileSync(file, `me read ${hashApiKey("second")}\n`);
  await vi.waitFor(async () => expect(await look()).toBe(401), { timeout: 20_000, interval: 200 });
});

it("wrong keys are told without their words, and soon no more are tried", async () => {
  const rig = await startApiRig();
  const wrong = await signIn(rig.api.origin, "wrong<script>", SAME, '/dashboard"><script>');
  const text = await wrong.text();
  expect([wrong.status, wrong.headers.get("set-cookie"), text.includes("knows no such key")]).toEqual([401, null, true]);
  expect(text).not.toContain("<script>");
  for (let left = 20; left > 0; left -= 1) await signIn(rig.api.origin, `wrong-${left}`);
  const late = await signIn(rig.api.origin, rig.key);
  expect([late.status, late.headers.get("set-cookie"), Number(late.headers.get("retry-after")) > 0]).toEqual([429, null, true]);
  expect((await signIn((await rig.serve()).origin, "x".repeat(20_000))).status).toBe(413);
});

it.each([
  ["/runs/r?sort=a#x", "/runs/r?sort=a"],
  ["/dashboard/../runs/r", "/runs/r"],
  [undefined, "/"],
  ["", "/"],
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["/\t/evil.example", "/"],
  ["/.//evil.example", "/"],
  ["/a/..//evil.example", "/"],
  ["https://evil.example/", "/"],
  ["javascript:alert(1)", "/"],
  ["/sign-out", "/"],
  [`/${"a".repeat(3_000)}`, "/"],
])("after signing in %j leads to %s", (asked, to) => {
  expect(nextPath(asked)).toBe(to);
});

it("a request is of the same origin when the browser says so, or its page has the same host and port", () => {
  const [origin, host] = ["http://a.example:8080", "A.example:8080"];
  expect(isSameOrigin({ site: "same-origin", origin: undefined, host })).toBe(true);
  expect(isSameOrigin({ site: undefined, origin, host })).toBe(true);
  expect(isSameOrigin({ site: undefined, origin: "http://a.example", host: "a.example" })).toBe(true);
  for (const other of ["http://a.example", "null", "", "http://b.example:8080", undefined])
    expect([other, isSameOrigin({ site: undefined, origin: other, host })]).toEqual([other, false]);
  expect(isSameOrigin({ site: undefined, origin, host: undefined })).toBe(false);
});
