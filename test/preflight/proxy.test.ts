// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, step } from "../../examples/stand-ins/script.ts";
import { checkHttp } from "../../src/preflight/check-http.ts";
import { goesThroughSocks, proxyOf } from "../../src/preflight/proxy.ts";
import { attemptRunner, codexVersions, TEST_KEY } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { freePort, startSmallServer } from "./tool-servers.ts";

const dir = suiteDir();

/** Forwards plain requests; `seen`: who asked for what. */
async function startProxy(): Promise<{ url: string; seen: { agent: string; url: string }[] }> {
  const seen: { agent: string; url: string }[] = [];
  const server = createServer((incoming: IncomingMessage, outgoing) => {
    seen.push({ agent: String(incoming.headers["user-agent"]), url: incoming.url! });
    const onward = request(incoming.url!, { method: incoming.method!, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
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
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

it.each<[string, Record<string, string>, string | null]>([
  ["http://tools/mcp", {}, null],
  ["http://tools/mcp", { HTTP_PROXY: "http://p:1" }, "http://p:1/"],
  ["http://tools/mcp", { HTTP_PROXY: "p:1", http_proxy: "http://q:1" }, "http://p:1/"],
  ["http://tools/mcp", { http_proxy: "http://q:1" }, "http://q:1/"],
  ["http://tools/mcp", { HTTPS_PROXY: "http://p:1" }, null],
  ["https://tools/mcp", { HTTPS_PROXY: "http://p:1", ALL_PROXY: "http://all:1" }, "http://p:1/"],
  ["https://tools/mcp", { HTTP_PROXY: "http://p:1", all_proxy: "http://all:1" }, "http://all:1/"],
  ["http://tools/mcp", { HTTP_PROXY: "ftp://p:1" }, null],
  ["http://tools/mcp", { HTTP_PROXY: "http://p:1", REQUEST_METHOD: "GET" }, null],
  ["http://tools/mcp", { HTTP_PROXY: "http://p:1", NO_PROXY: "other, tools" }, null],
  ["http://a.tools/mcp", { HTTP_PROXY: "http://p:1", no_proxy: ".tools" }, null],
  ["http://atools/mcp", { HTTP_PROXY: "http://p:1", NO_PROXY: "tools" }, "http://p:1/"],
  ["http://tools:80/mcp", { HTTP_PROXY: "http://p:1", NO_PROXY: "tools:80" }, "http://p:1/"],
  ["http://tools/mcp", { HTTP_PROXY: "http://p:1", NO_PROXY: "*" }, null],
  ["http://127.0.0.1:9/mcp", { HTTP_PROXY: "http://p:1", NO_PROXY: "*" }, "http://p:1/"],
  ["http://127.0.0.1:9/mcp", { HTTP_PROXY: "http://p:1", NO_PROXY: "localhost,127.0.0.1" }, null],
  ["http://10.1.2.3/mcp", { HTTP_PROXY: "http://p:1", NO_PROXY: "10.0.0.0/8" }, null],
  ["http://[::1]/mcp", { HTTP_PROXY: "http://p:1", NO_PROXY: "::1" }, null],
])("the proxy of %s under %o is %s, as for Codex [fault D11]", (url, env, proxy) => {
  expect(proxyOf(new URL(url), env)?.href ?? null).toBe(proxy);
});

it("a look at a server goes through the session's proxy, and one that fails there names it without its password [fault D11]", async () => {
  const [proxy, server] = [await startProxy(), await startSmallServer()];
  onTestFinished(() => server.close());
  const connection = { transport: "streamable_http" as const, url: server.url, headers: {} };
  const bound = { seconds: 10, signal: new AbortController().signal };
  expect(await checkHttp(connection, { HTTP_PROXY: proxy.url }, bound)).toEqual({ tools: ["finish"] });
  expect(proxy.seen.map(({ url }) => url)).toContain(server.url);

  const dead = `http://me:s3cret-word@127.0.0.1:${await freePort()}`;
  const failed = await checkHttp(connection, { HTTP_PROXY: dead }, { ...bound, seconds: 1 });
  expect(failed).toMatchObject({
    finding: { case: "unreachable", what: expect.stringMatching(/^through the proxy http:\/\/127[^@]+ of sandbox\.env: /) },
  });
  expect(JSON.stringify(failed)).not.toContain("s3cret-word");
  expect(await checkHttp(connection, { HTTP_PROXY: dead, NO_PROXY: "127.0.0.1" }, bound)).toEqual({ tools: ["finish"] });
  expect(goesThroughSocks(server.url, { ALL_PROXY: "socks5://p:1" })).toBe(true);
});

it.each(await codexVersions())(
  "preflight and Codex $name go the same way, through the proxy or past it [fault D11]",
  async ({ name, codex }) => {
    const [proxy, model, office] = [await startProxy(), await startModelServer({ apiKey: TEST_KEY }), await startOfficeTools()];
    onTestFinished(async () => void (await Promise.all([model.close(), office.close()])));
    const runner = await attemptRunner(`${dir}/${name}`, codex);
    const attempt = async (id: string, env: Record<string, string>) => {
      const headers = { "X-NeMo-Gym-Session-Token": office.mintToken(id, null) };
      const connection = { transport: "streamable_http", url: office.url, headers };
      const { attempt } = await runner.outcome({
        task_id: { taskset: "t", task_id: id },
        input: `Do it.\n${scriptLine({ steps: [step(mcp("office", "finish", { reason: "done", paths: [] })), step(say("done"))] })}`,
        model: { name: "stand-in", base_url: model.captureBaseUrl },
        tool_grants: [{ type: "mcp", name: "office", required: true, preflight: true, connection }],
        required_tools: ["finish"],
        max_attempts: 1,
        codex: { mcp_startup_timeout_seconds: 5 },
        sandbox: { env },
      });
      return attempt;
    };
    const word = name.replaceAll(".", "_").replaceAll(/[^a-z0-9_]/g, "");
    expect(await attempt(`through-${word}`, { HTTP_PROXY: proxy.url })).toMatchObject({ status: "completed", failure: null });
    const agents = new Set(proxy.seen.filter(({ url }) => url === office.url).map(({ agent }) => agent));
    expect(agents.size, [...agents].join()).toBeGreaterThan(1); // the look, and Codex
    const before = proxy.seen.length;
    expect(await attempt(`past-${word}`, { HTTP_PROXY: proxy.url, NO_PROXY: "127.0.0.0/8" })).toMatchObject({
      status: "completed",
      failure: null,
    });
    expect(proxy.seen).toHaveLength(before);
    expect(await attempt(`nowhere-${word}`, { HTTP_PROXY: `http://127.0.0.1:${await freePort()}` })).toMatchObject({
      status: "failed",
      failure: {
        cause_code: "mcp_server_unreachable",
        server_names: ["office"],
        failure_reason: expect.stringContaining("through the proxy"),
      },
    });
  },
);
