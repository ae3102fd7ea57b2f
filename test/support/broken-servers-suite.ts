// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startBrokenServer, type BrokenServerOptions } from "../../examples/stand-ins/broken-server.ts";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, step } from "../../examples/stand-ins/script.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import type { codexVersions } from "./attempt.ts";
import { commandLinesHolding, filesHolding } from "./byte-search.ts";
import { rollcall } from "./rollcall-command.ts";
import { suiteDir } from "./suite-dir.ts";

// Every way in which a tool server is down, by the command, the real queue and the real Codex: what the results say of
// it, and that nothing anywhere holds a piece of the token that the servers repeat.

const KEY = "stand-in-key-of-broken-servers";
/** Holds what is escaped in JSON and in URLs, and is another one for each task. */
const token = (id: string): string => `FAKE-"pe%lican\\-${id}-pelican's-egg`;
/** Those that are the same in every form; eight characters and more. */
const pieces = (id: string): string[] => [`-${id}-pelican`, "pelican's-egg", "lican\\-", 'FAKE-"pe'];
const LARGE = 100_000;

type Kind = { name: string; cause: string; start: () => Promise<string> };
const closing: { close(): Promise<void> }[] = [];
const broken =
  (kind: Parameters<typeof startBrokenServer>[0], options: BrokenServerOptions = {}) =>
  async (): Promise<string> => {
    const server = await startBrokenServer(kind, { echoHeader: "Authorization", ...options });
    closing.push(server);
    return server.url;
  };
const KINDS: Kind[] = [
  { name: "says-401-raw", cause: "mcp_server_auth", start: broken("status", { echo: "raw", fillTo: LARGE }) },
  { name: "says-401-escaped", cause: "mcp_server_auth", start: broken("status", { echo: "json", fillTo: LARGE }) },
  { name: "says-401-cut", cause: "mcp_server_auth", start: broken("status", { echo: "cut", fillTo: LARGE }) },
  { name: "says-401-late", cause: "mcp_server_auth", start: broken("status", { echo: "long" }) },
  { name: "hangs", cause: "mcp_startup_timeout", start: broken("hang") },
  { name: "sends-html", cause: "mcp_server_protocol", start: broken("html", { echo: "raw" }) },
  { name: "closes", cause: "mcp_server_unreachable", start: broken("close") },
  { name: "list-hangs", cause: "mcp_startup_timeout", start: broken("hang", { at: "tools/list" }) },
  { name: "list-401", cause: "mcp_server_auth", start: broken("status", { at: "tools/list", echo: "raw" }) },
  { name: "list-500", cause: "mcp_server_unreachable", start: broken("status", { at: "tools/list", status: 500, echo: "json" }) },
  { name: "list-error", cause: "mcp_server_protocol", start: broken("jsonrpc_error", { at: "tools/list", echo: "raw" }) },
  { name: "list-closes", cause: "mcp_server_unreachable", start: broken("close", { at: "tools/list" }) },
  { name: "list-html", cause: "mcp_server_protocol", start: broken("html", { at: "tools/list", echo: "raw" }) },
  { name: "list-bad", cause: "mcp_server_protocol", start: broken("bad_result", { at: "tools/list", echo: "raw" }) },
  { name: "no-such-name", cause: "mcp_server_unreachable", start: () => Promise.resolve("http://no-such-host.invalid/mcp") },
];
/** Whether a turn may start without the server, and whether Rollcall looks at it or leaves that to Codex. */
const GRANTS = [
  { name: "required", required: true },
  { name: "required-looked-at", required: true, preflight: true },
  { name: "optional", required: false },
  { name: "optional-not-looked-at", required: false, preflight: false },
];

/** Codex says nothing of an optional server that fails at tools/list; 0.144.4 nor of one that has not answered yet. */
const gapOfOptional = (kind: Kind, lookedAt: boolean, version: string): string =>
  !lookedAt && (kind.name.startsWith("list-") || (kind.name === "hangs" && version === "0.144.4"))
    ? "mcp_server_state_unknown"
    : "mcp_server_unavailable";

/** Under one Codex version: a test for vitest to run. */
export function describeBrokenServers(title: string, { name: version, codex }: Awaited<ReturnType<typeof codexVersions>>[number]): void {
  const dir = suiteDir();
  let model: ModelServer;
  beforeAll(async () => {
    model = await startModelServer({ apiKey: KEY });
    closing.push(model);
  });
  afterAll(() => Promise.all(closing.map((server) => server.close())));

  it(title, async () => {
    const root = join(dir, version.replaceAll(/[^0-9]/g, "_"));
    const [out, state] = [join(root, "out"), join(root, "state")];
    mkdirSync(join(root, "run"), { recursive: true, mode: 0o700 });
    const tasks = await Promise.all(
      KINDS.flatMap((kind) =>
        GRANTS.map(async ({ name, ...grant }) => {
          const id = `${kind.name}.${name}.${version}`; // the stand-in counts by it, over both versions
          const connection = { transport: "streamable_http", url: await kind.start(), headers: { Authorization: `Bearer ${token(id)}` } };
          const codex = kind.name.endsWith("hangs") ? { mcp_startup_timeout_seconds: 1 } : {};
          const input = `Do the work.\n${scriptLine({ steps: [step(say("ok"))] })}`;
          const task_id = { taskset: "tools", task_id: id };
          return {
            id,
            kind,
            grant,
            row: { task_id, input, codex, max_attempts: 1, tool_grants: [{ type: "mcp", name: "office", ...grant, connection }] },
          };
        }),
      ),
    );
    writeFileSync(join(root, "tasks.jsonl"), tasks.map(({ row }) => `${JSON.stringify(row)}\n`).join(""));
    writeFileSync(join(root, "rollcall.toml"), `log_level = "debug"\ncodex_version = "${codex.version}"\n`);
    const settings = ["--config", join(root, "rollcall.toml"), "--model", "stand-in", "--model-base-url", model.captureBaseUrl];
    const running = rollcall(["run", join(root, "tasks.jsonl"), "--out", out, "--concurrency", "4", ...settings], {
      env: {
        OPENAI_API_KEY: KEY,
        CODEX_BIN: join(codex.hostDir, codex.entry),
        XDG_STATE_HOME: state,
        XDG_RUNTIME_DIR: join(root, "run"),
        TMPDIR: root,
      },
    });
    const onCommandLines: string[] = [];
    const watch = setInterval(() => onCommandLines.push(...commandLinesHolding("pelican")), 1_000);
    const ended = await running.finally(() => clearInterval(watch));
    expect(ended, ended.stderr).toMatchObject({ code: 1 });
    const results = readFileSync(join(out, "results.jsonl"), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as ActivationResult);

    const told = results.map(({ task_id, status, failure, observations, attempts }) => {
      const gaps = observations.gaps.map(({ code }) => code).filter((code) => /^(?:agent_startup_failed|mcp_server_.*)$/.test(code));
      const modelCalls = model.log.countOf(attempts[0]!.capture_key);
      return [task_id.task_id, { status, cause: failure?.cause_code, servers: failure?.server_names, modelCalls, gaps }];
    });
    const wanted = tasks.map(({ kind, grant, id }) => {
      if (!grant.required)
        return [id, { status: "completed", modelCalls: 1, gaps: [gapOfOptional(kind, grant.preflight !== false, version)] }];
      const gaps = ["mcp_server_unavailable", "agent_startup_failed"]; // whether Rollcall or Codex found it
      return [id, { status: "failed", cause: kind.cause, servers: ["office"], modelCalls: 0, gaps }];
    });
    expect(told).toHaveLength(wanted.length);
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(wanted));
    for (const { failure, observations, task_id } of results.filter(({ status }) => status === "failed")) {
      const startup = observations.gaps.filter(({ code }) => code === "agent_startup_failed");
      expect(
        startup.map(({ detail }) => detail),
        task_id.task_id,
      ).toEqual([failure?.failure_reason]);
    }

    for (const piece of [KEY, ...tasks.flatMap(({ id }) => pieces(id))]) {
      expect([...filesHolding(out, piece), ...filesHolding(state, piece)], piece).toEqual([]);
      expect((ended.stdout + ended.stderr).includes(piece), piece).toBe(false);
    }
    expect(onCommandLines).toEqual([]);
    // The same search finds what is no secret of the same bodies.
    expect(filesHolding(out, "the office tools are down")).toContain("results.jsonl");
    expect(filesHolding(state, "no-such-name").some((file) => file.includes("appendonly"))).toBe(true);
  });
}
