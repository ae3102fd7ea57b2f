// SPDX-License-Identifier: Apache-2.0
import { Hono } from "hono";
import { expect, it } from "vitest";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { readSessionCookie, setSessionCookie, type CookieClaim } from "../../src/gym/cookie.ts";

const [OLD, NEW] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64"));

function server(keyList: string): { set(id: string): Promise<string>; read(cookie?: string): Promise<CookieClaim> } {
  const keys = parseSecretKeys(keyList);
  const app = new Hono();
  app.get("/read", async (context) => context.json(await readSessionCookie(context, keys)));
  app.post("/set", async (context) => {
    await setSessionCookie(context, await context.req.text(), keys);
    return context.body(null);
  });
  return {
    async set(id) {
      const header = (await app.request("/set", { method: "POST", body: id })).headers.get("set-cookie")!;
      expect(header).toMatch(/; Path=\/; HttpOnly/);
      return header.split(";")[0]!;
    },
    read: async (cookie) => (await (await app.request("/read", cookie === undefined ? {} : { headers: { cookie } })).json()) as CookieClaim,
  };
}

it.each(["agent-session-0123", "../caller supplied/id", 'ä "; \\ =.'])(
  "a cookie tells the session %s to every process with the key",
  async (id) => {
    const cookie = await server(OLD!).set(id);
    expect(await server(OLD!).read(cookie)).toEqual({ kind: "session", id });
    expect(await server(`${NEW},${OLD}`).read(`a=b; ${cookie}`)).toEqual({ kind: "session", id });
    expect(await server(NEW!).read(cookie)).toEqual({ kind: "unusable" });
  },
);

it.each(["agent_session_id=", "agent_session_id=plain", "agent_session_id=x.AAAA", 'x=1; agent_session_id="{"'])(
  "%s is no session of ours",
  async (cookie) => {
    expect(await server(OLD!).read(cookie)).toEqual({ kind: "unusable" });
  },
);

it("a signed cookie without an id, or with another than was signed, is unusable; another cookie is none", async () => {
  const own = server(OLD!);
  expect(await own.read(await own.set(""))).toEqual({ kind: "unusable" });
  expect(await own.read((await own.set("session-a")).replace("session-a", "session-b"))).toEqual({ kind: "unusable" });
  expect(await own.read("other=1")).toEqual({ kind: "none" });
  expect(await own.read()).toEqual({ kind: "none" });
});
