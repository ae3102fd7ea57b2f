// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it } from "vitest";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { checkHttp } from "../../src/preflight/check-http.ts";
import type { Finding, ServerCheck } from "../../src/preflight/finding.ts";
import { freePort, startSmallServer, type SmallServer, type SmallServerOptions } from "./tool-servers.ts";

const TOKEN = "tok-preflight-4711-abcdef";
const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((server) => server.close()));
});

async function small(options: SmallServerOptions = {}): Promise<SmallServer> {
  const server = await startSmallServer(options);
  closing.push(server);
  return server;
}

async function broken(...args: Parameters<typeof startBrokenServer>): Promise<Awaited<ReturnType<typeof startBrokenServer>>> {
  const server = await startBrokenServer(...args);
  closing.push(server);
  return server;
}

async function office(options: Parameters<typeof startOfficeTools>[0] = {}): Promise<OfficeTools> {
  const server = await startOfficeTools(options);
  closing.push(server);
  return server;
}

function check(url: string, seconds = 1, signal: AbortSignal = new AbortController().signal): Promise<ServerCheck> {
  return checkHttp({ transport: "streamable_http", url, headers: { "X-NeMo-Gym-Session-Token": TOKEN } }, {}, { seconds, signal });
}

async function finding(url: string, seconds?: number): Promise<Finding> {
  const found = await check(url, seconds);
  if ("tools" in found) throw new Error(`usable after all: ${found.tools.join()}`);
  return found.finding;
}

describe("a server that works", () => {
  it.each(["json", "sse"] as const)("tells its tools, replying in %s", async (replies) => {
    const { url } = await office({ replies });
    expect(await check(url, 10)).toEqual({ tools: ["finish", "abandon_task_finish", "web_search", "fetch_web_page"] });
  });

  it("gets the grant's headers with every request, also those of the URL's user info, and is told when its session ends", async () => {
    const server = await small({ sessionId: "s-1" });
    expect(await check(server.url.replace("http://", "http://me:p%40ss@"), 10)).toEqual({ tools: ["finish"] });
    expect(server.asked).toEqual(["initialize", "notifications/initialized", expect.anything(), expect.anything(), "DELETE"]);
    expect([...server.asked].sort()).toEqual(["DELETE", "GET", "initialize", "notifications/initialized", "tools/list"]);
    for (const headers of server.headers) {
      expect(headers["x-nemo-gym-session-token"]).toBe(TOKEN);
      expect(headers.authorization).toBe(`Basic ${Buffer.from("me:p@ss").toString("base64")}`);
    }
  });

  it("is read to the last page of its list", async () => {
    const { url } = await small({ pages: [["a", "b"], ["c"], []] });
    expect(await check(url, 10)).toEqual({ tools: ["a", "b", "c"] });
  });

  it("is not asked for ever when its pages never end", async () => {
    const server = await small({
      instead({ id, method }, _request, response) {
        if (method !== "tools/list") return false;
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { tools: [], nextCursor: "again" } }));
        return true;
      },
    });
    expect(await finding(server.url, 20)).toMatchObject({ phase: "tools/list", case: "protocol" });
  });

  it("may redirect within its own origin", async () => {
    const server = await small({
      instead(_message, request, response) {
        if (request.url !== "/mcp") return false;
        response.writeHead(307, { location: "/elsewhere" }).end();
        return true;
      },
    });
    expect(await check(server.url, 10)).toEqual({ tools: ["finish"] });
  });
});

describe("a server that does not work", () => {
  it("that nobody can reach is unreachable, and the bound and its setting are named [B12]", async () => {
    const { url } = await broken("refuses");
    const begun = performance.now();
    expect(await finding(url)).toMatchObject({
      phase: "connect",
      case: "unreachable",
      what: "not ready after 1 s (codex.mcp_startup_timeout_seconds): the connection was refused",
      said: { text: expect.stringContaining("ECONNREFUSED") },
    });
    expect(performance.now() - begun).toBeGreaterThanOrEqual(1_000);
  });

  it("whose name does not resolve is unreachable at once", async () => {
    expect(await finding("http://no-such-host.invalid/mcp", 30)).toMatchObject({ phase: "connect", case: "unreachable" });
  });

  it("that closes the connection is unreachable", async () => {
    expect(await finding((await broken("close")).url)).toMatchObject({ phase: "connect", case: "unreachable" });
  });

  it("that is unreachable again and again is told as that, wherever the bound cuts its last try off", async () => {
    const server = await small({
      instead(_message, request) {
        setTimeout(() => request.socket.destroy(), 600);
        return true;
      },
    });
    expect(await finding(server.url)).toMatchObject({ phase: "connect", case: "unreachable", what: expect.stringContaining("not ready") });
  });

  it("that closes the connection once, then takes a request and never answers, does not reply", async () => {
    let requests = 0;
    const server = await small({
      instead(_message, request) {
        if (requests++ === 0) request.socket.destroy();
        return true;
      },
    });
    expect(await finding(server.url)).toMatchObject({ phase: "initialize", case: "no_reply" });
  });

  it.each([401, 403])("that answers %i refused the credentials; what it said is kept, bounded", async (status) => {
    const server = await broken("status", { status, echo: "long" });
    const found = await finding(server.url, 30);
    expect(found).toMatchObject({ phase: "initialize", case: "refused", what: `it refused the grant's credentials: HTTP ${status}` });
    expect(found.said?.text.length).toBe(16 * 1024);
    expect(found.said?.endsAtCut).toBe(true);
    expect(server.requests()).toBe(1);
  });

  it.each<[kind: "html" | "jsonrpc_error", what: string]>([
    ["html", "it did not answer as an MCP server"],
    ["jsonrpc_error", "it answered with an error"],
  ])("that answers with %s is not one of MCP's", async (kind, what) => {
    expect(await finding((await broken(kind)).url, 30)).toMatchObject({ phase: "initialize", case: "protocol", what });
  });

  it.each<[status: number, kind: string]>([
    [404, "protocol"],
    [500, "unreachable"],
  ])("that answers HTTP %i is told as Codex's own words would be", async (status, kind) => {
    expect(await finding((await broken("status", { status })).url, 30)).toMatchObject({
      case: kind,
      what: `it answered with HTTP ${status}`,
      said: { text: "the office tools are down" },
    });
  });

  it.each<[body: string, what: string]>([
    ["{}", "its answer is not what MCP prescribes"],
    ["no JSON", "its answer is not JSON"],
  ])("that answers with %j is not one of MCP's", async (body, what) => {
    const server = await small({
      instead(_message, _request, response) {
        response.writeHead(200, { "content-type": "application/json" }).end(body);
        return true;
      },
    });
    expect(await finding(server.url, 30)).toMatchObject({ case: "protocol", what });
  });

  it.each<[silent: string, phase: string]>([
    ["initialize", "initialize"],
    ["notifications/initialized", "initialize"],
    ["tools/list", "tools/list"],
  ])("that never answers %s is waited for no longer than the bound [B3]", async (silent, phase) => {
    const { url } = await small({ silent: [silent] });
    const begun = performance.now();
    expect(await finding(url)).toMatchObject({ phase, case: "no_reply" });
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  it("whose answer never ends is cut off", async () => {
    const { url } = await small({
      instead(_message, _request, response) {
        response.writeHead(200, { "content-type": "application/json" });
        const fill = (): void => {
          while (response.writable && response.write("x".repeat(64 * 1024)));
          response.once("drain", fill);
        };
        fill();
        return true;
      },
    });
    expect(await finding(url, 30)).toMatchObject({ case: "protocol", said: { text: expect.stringContaining("longer than") } });
  });

  it.each([301, 302, 307, 308])("that redirects to another origin with %i does not get the token sent there", async (status) => {
    const other = await small();
    const { url } = await small({
      instead(_message, _request, response) {
        response.writeHead(status, { location: `${other.url}?token=${TOKEN}` }).end();
        return true;
      },
    });
    const found = await finding(url, 30);
    expect(found).toMatchObject({ case: "protocol", what: expect.stringContaining(other.url) });
    expect(JSON.stringify(found)).not.toContain(TOKEN);
    expect(other.asked).toEqual([]);
  });
});

describe("a server that comes up late", () => {
  it("is waited for while nobody listens, and while its proxy says so [B12]", async () => {
    const port = await freePort();
    const checked = check(`http://127.0.0.1:${port}/mcp`, 30);
    let unready = 2;
    const late = setTimeout(() => {
      void small({
        port,
        instead(_message, _request, response) {
          if (unready-- <= 0) return false;
          response.writeHead(503).end();
          return true;
        },
      });
    }, 600);
    expect(await checked).toEqual({ tools: ["finish"] });
    expect(unready).toBeLessThan(0);
    clearTimeout(late);
  });
});

it("stops at once when it is told to, with the reason it was given", async () => {
  const { url } = await broken("hang");
  const controller = new AbortController();
  const checked = check(url, 60, controller.signal);
  const reason = { kind: "shutdown" };
  setTimeout(() => controller.abort(reason), 50);
  await expect(checked).rejects.toBe(reason);
});
