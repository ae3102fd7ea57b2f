// SPDX-License-Identifier: Apache-2.0
import TOML from "@iarna/toml";
import * as fc from "fast-check";
import { parse as secondParser } from "smol-toml";
import { describe, expect, it } from "vitest";
import { codexConfig } from "../../src/codex/config.ts";
import { mcpServerEntry } from "../../src/codex/mcp-servers.ts";
import { renderConfig } from "../../src/codex/render-config.ts";
import { RollcallError } from "../../src/errors.ts";
import { profileFor } from "../../src/codex/profile.ts";
import { configInput, httpGrant, stdioGrant } from "./config-input.ts";

const NO_TIMEOUTS = { startupSeconds: undefined, toolSeconds: undefined };
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Between the two stands what differs between versions. */
const [BEFORE, AFTER] = [
  `model_provider = "rollcall"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
check_for_update_on_startup = false
`,
  `
[shell_environment_policy]
ignore_default_excludes = false
exclude = [ "OPENAI_*", "CODEX_HOME" ]

[model_providers.rollcall]
name = "rollcall"
base_url = "https://api.openai.com/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
stream_idle_timeout_ms = 600_000

[projects."/workspace"]
trust_level = "untrusted"
`,
];
const OFF = `
[analytics]
enabled = false

[history]
persistence = "none"

[features]
memories = false
plugins = false
shell_snapshot = false
goals = false
`;
const WITHOUT_GRANTS = {
  "0.144.4": `${BEFORE}${OFF}multi_agent = false
code_mode = false

  [features.multi_agent_v2]
  enabled = false
  max_concurrent_threads_per_session = 1
${AFTER}`,
  "0.171.0": `${BEFORE}mcp_optional_startup_grace_ms = 0
${OFF}sleep_tool = false
unbounded_connection_retries = false
code_mode = false

[agents]
enabled = false
${AFTER}`,
};
const VERSIONS = ["0.144.4", "0.171.0"] as const;

describe("codexConfig", () => {
  it.each(VERSIONS)("of a session of %s without grants has no mcp_servers key, and stays as it is to the byte [R34]", (version) => {
    expect(renderConfig(codexConfig(configInput({}, { profile: profileFor(version) })))).toBe(WITHOUT_GRANTS[version]);
  });

  it.each(VERSIONS)("of %s adds grants, and that their tools are offered by name, without changing anything else [R34 R36]", (version) => {
    const profile = profileFor(version);
    const servers = { "office-1": mcpServerEntry(httpGrant("office-1", "http://127.0.0.1:1/mcp"), NO_TIMEOUTS) };
    const { mcp_servers, features, ...rest } = codexConfig(configInput({}, { servers, profile }));
    const { features: usual, ...without } = codexConfig(configInput({}, { profile }));
    expect(rest).toEqual(without);
    expect(features).toEqual({ ...(usual as object), code_mode: { enabled: false, direct_only_tool_namespaces: ["mcp__office_1"] } });
    expect(mcp_servers).toEqual({ "office-1": { url: "http://127.0.0.1:1/mcp", required: true } });
  });

  it.each(VERSIONS)("of %s leaves tools to the model's catalogue, and agents to the model, where the activation says so", (version) => {
    const profile = profileFor(version);
    const servers = { office: mcpServerEntry(httpGrant("office", "http://127.0.0.1:1/mcp"), NO_TIMEOUTS) };
    const catalogue = codexConfig(configInput({ codex: { tools: "catalogue" } }, { servers, profile }));
    expect(catalogue["features"]).toEqual(codexConfig(configInput({}, { profile }))["features"]);
    const agents = codexConfig(configInput({ codex: { subagents: "on" } }, { servers, profile }));
    expect(agents).not.toHaveProperty("agents");
    expect(agents["features"]).toEqual({
      ...profile.features,
      code_mode: { enabled: false, direct_only_tool_namespaces: ["mcp__office", "multi_agent_v1"] },
    });
    const both = codexConfig(configInput({ codex: { subagents: "on", tools: "catalogue" } }, { servers, profile }));
    expect(both["features"]).toEqual({ ...profile.features, code_mode: false });
  });

  it("writes what the activation asks for", () => {
    const config = codexConfig(
      configInput(
        {
          input: [
            { role: "developer", content: "leading" },
            { role: "user", content: "hello" },
          ],
          instructions: "own",
          model: { name: "m", base_url: "http://127.0.0.1:1/ng-rollout/{capture_key}/v1" },
          codex: { timeout_seconds: 1.2345, model_context_window: 1000, model_auto_compact_token_limit: 900, reasoning_effort: "high" },
        },
        { systemPrompt: "configured", captureKey: "r1-a2" },
      ),
    );
    expect(config).toMatchObject({
      model: "m",
      developer_instructions: "configured\n\nown\n\nleading",
      model_context_window: 1000,
      model_auto_compact_token_limit: 900,
      model_reasoning_effort: "high",
      model_providers: { rollcall: { base_url: "http://127.0.0.1:1/ng-rollout/r1-a2/v1", stream_idle_timeout_ms: 1235 } },
    });
  });

  it("joins no instructions that say nothing", () => {
    const input = [
      { role: "developer" as const, content: "leading" },
      { role: "user" as const, content: "hello" },
    ];
    expect(codexConfig(configInput({ input, instructions: "" }, { systemPrompt: "" }))).toMatchObject({
      developer_instructions: "leading",
    });
  });

  it("names a model when a model server is set, since Codex's own default has other tools", () => {
    expect(codexConfig(configInput({ model: { base_url: "http://127.0.0.1:1/v1" } }))).toMatchObject({ model: "gym-policy-model" });
    expect(codexConfig(configInput())).not.toHaveProperty("model");
  });

  it("gives the task's own variables to its commands whatever their names, and no other", () => {
    const env = { HF_TOKEN: { value: "a", secret: true }, OPENAI_ORG: "b", COLOR: "c", NO_OPENAI_ORG: "d" };
    const { shell_environment_policy: policy } = codexConfig(configInput({ sandbox: { env } }));
    expect((policy as { set: unknown }).set).toEqual({ HF_TOKEN: "a", OPENAI_ORG: "b" }); // Codex hides no other
  });
});

describe("mcpServerEntry", () => {
  const both = [
    httpGrant("h", "http://127.0.0.1:1/mcp", { "X-Tok": 'a "b"', "x-two": "2" }),
    stdioGrant("s", { command: "/bin/server", args: ["--a", "b c"], env: { K: "v" }, cwd: "/workspace" }),
  ] as const;

  it("writes url, headers and what makes a required server required, by one builder for every path [R2 R3 R4 R5]", () => {
    expect(mcpServerEntry(both[0], NO_TIMEOUTS)).toEqual({
      url: "http://127.0.0.1:1/mcp",
      http_headers: { "X-Tok": 'a "b"', "x-two": "2" },
      required: true,
    });
    expect(mcpServerEntry({ ...both[0], required: false }, NO_TIMEOUTS)).not.toHaveProperty("required");
  });

  it("writes command, args, env and cwd of a stdio server", () => {
    expect(mcpServerEntry(both[1], NO_TIMEOUTS)).toEqual({
      command: "/bin/server",
      args: ["--a", "b c"],
      env: { K: "v" },
      cwd: "/workspace",
      required: true,
    });
  });

  it("leaves out what would be empty", () => {
    expect(mcpServerEntry(httpGrant("h", "http://127.0.0.1:1/mcp", {}, false), NO_TIMEOUTS)).toEqual({ url: "http://127.0.0.1:1/mcp" });
    expect(mcpServerEntry(stdioGrant("s", { command: "c" }, false), NO_TIMEOUTS)).toEqual({ command: "c" });
  });

  it("tells a server over HTTP of the trace, unless its grant does, and one that is a program not", () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    expect(mcpServerEntry(both[0], { ...NO_TIMEOUTS, traceparent })).toMatchObject({
      http_headers: { "X-Tok": 'a "b"', "x-two": "2", traceparent },
    });
    const own = httpGrant("h", "http://127.0.0.1:1/mcp", { Traceparent: "own" });
    for (const grant of [own, both[1]])
      expect(mcpServerEntry(grant, { ...NO_TIMEOUTS, traceparent })).toEqual(mcpServerEntry(grant, NO_TIMEOUTS));
  });

  it.each(both)("writes time-outs when they are set, and only then [R29 R36 R54]", (grant) => {
    expect(Object.keys(mcpServerEntry(grant, NO_TIMEOUTS))).not.toContain("tool_timeout_sec");
    const timed = mcpServerEntry(grant, { startupSeconds: 2, toolSeconds: 0.5 });
    expect(timed).toMatchObject({ startup_timeout_sec: 2, tool_timeout_sec: 0.5 });
    expect(timed).toMatchObject(mcpServerEntry(grant, NO_TIMEOUTS));
  });
});

describe("renderConfig", () => {
  const server = (name: string, headers: Record<string, string>): Record<string, unknown> =>
    codexConfig(configInput({}, { servers: { [name]: mcpServerEntry(httpGrant(name, "http://127.0.0.1:1/mcp", headers), NO_TIMEOUTS) } }));

  it("reads the same in a second parser, headers as http_headers only [B6 R2 R3]", () => {
    const config = server("office", { "X-NeMo-Gym-Session-Token": "tok", Authorization: "Bearer x" });
    const read = secondParser(renderConfig(config));
    expect(plain(read)).toEqual(plain(config));
    expect((read["mcp_servers"] as Record<string, object>)["office"]).toEqual({
      url: "http://127.0.0.1:1/mcp",
      http_headers: { "X-NeMo-Gym-Session-Token": "tok", Authorization: "Bearer x" },
      required: true,
    });
  });

  it("leaves a name with a hyphen and an underscore bare [R6]", () => {
    const text = renderConfig(server("gdpval-tools_1", {}));
    expect(text).toContain("[mcp_servers.gdpval-tools_1]");
    expect(Object.keys(secondParser(text)["mcp_servers"] as object)).toEqual(["gdpval-tools_1"]);
  });

  const nasty = {
    "a Windows path": "F:\\new\\tmp",
    "double quotes": 'say """ and "" and "',
    "single quotes": "say ''' and ' and \"",
    "a lone CR": "a\rb",
    CRLF: "a\r\nb\r\n",
    tab: "a\tb",
    NUL: "a\0b",
    "two control characters": "\u0001\u0002",
    DEL: "a\u007fb",
    "half a pair": "a\ud800b",
    emoji: "価格 😀",
    "a BOM": "\ufeffa",
    "line separators": "a\u2028b\u0085c",
    "100 KiB": "x\ny".repeat(34_134),
    "a trailing backslash": "a\\",
    "a trailing backslash after lines": "a\nb\\",
    "line breaks at the beginning": "\n\na",
    "quotes after lines": 'a\n"""\n"',
    braces: "{ a = 1 } # no comment [x]",
    empty: "",
  };
  const REFUSED = new Set(["two control characters", "DEL", "half a pair"]);
  it.each(Object.entries(nasty))("carries %s through two parsers, or refuses it by its place and not by its value [B8]", (name, value) => {
    const places: [string, Record<string, unknown>][] = [
      ["developer_instructions", { developer_instructions: value }],
      ["mcp_servers.s.args.1", { mcp_servers: { s: { args: ["a", value] } } }],
      ['mcp_servers.s.http_headers."x.y"', { mcp_servers: { s: { http_headers: { "x.y": value } } } }],
      ["mcp_servers.s.env", { mcp_servers: { s: { env: { [value]: "v" } } } }],
    ];
    for (const [place, config] of places) {
      let text: string;
      try {
        text = renderConfig(config);
      } catch (error) {
        expect(REFUSED).toContain(name);
        expect(error).toBeInstanceOf(RollcallError);
        expect(error).toMatchObject({ code: "config_invalid", message: expect.stringContaining(place) });
        expect(error).not.toHaveProperty("cause"); // a parser's error quotes the line
        expect((error as Error).message).not.toContain(value);
        continue;
      }
      expect(REFUSED).not.toContain(name);
      expect(plain(TOML.parse(text))).toEqual(config);
      expect(plain(secondParser(text))).toEqual(config);
    }
  });

  it("never writes text that a second parser reads otherwise [B8]", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: "grapheme" }),
      fc.array(fc.constantFrom(...Array.from("\"\\'\n\r\t# =[]{}a."))).map((c) => c.join("")),
    );
    const config = fc.dictionary(
      text.filter((key) => key !== "__proto__"),
      fc.oneof(text, fc.array(text), fc.integer(), fc.boolean()),
    );
    fc.assert(
      fc.property(config, (inner) => {
        let written: string;
        try {
          written = renderConfig({ table: { inner } });
        } catch (error) {
          return (error as RollcallError).code === "config_invalid";
        }
        expect(plain(secondParser(written))).toEqual(plain({ table: { inner } }));
        return true;
      }),
      { numRuns: 500 },
    );
  });

  it.each([1e-7, Number.NaN, Number.POSITIVE_INFINITY])("refuses a number it cannot write: %d", (value) => {
    expect(() => renderConfig({ mcp_servers: { a: { tool_timeout_sec: value } } })).toThrow(/mcp_servers\.a\.tool_timeout_sec/);
  });

  it("names the place of what it refuses by its keys, and the top where there are none", () => {
    expect(() => renderConfig({ a: { "b\u007f": "x" } })).toThrow("cannot carry the value at a (a key of it): ");
    expect(() => renderConfig({ "b\u007f": "x" })).toThrow("cannot carry the value at the top (a key of it): ");
    expect(() => renderConfig({ a: { b: null } })).toThrow("cannot carry the value at a.b: ");
  });

  it("refuses the whole where every value survives and the sum of them does not", () => {
    // The writer takes a list that begins with a table for a list of tables.
    expect(() => renderConfig({ list: [{ a: 1 }, 2] })).toThrow("cannot carry the value at the whole: ");
  });
});
