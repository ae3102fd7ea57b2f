// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { planServers } from "../../src/activation/plan.ts";
import { toolGrantSchema, type ToolGrant } from "../../src/contract/grant.ts";
import { httpGrant, stdioGrant } from "../codex/config-input.ts";
import { profileFor } from "../../src/codex/profile.ts";

const NO_TIMEOUTS = { startupSeconds: undefined, toolSeconds: undefined };
const VERSION = "0.144.4";
const URL = "http://127.0.0.1:1/mcp";
const direct = (name: string, required: boolean): ToolGrant =>
  toolGrantSchema.parse({ name, required, type: "direct_http", base_url: URL });

describe("planServers", () => {
  it("makes a server of every usable grant, required or not [R2 R35]", () => {
    const grants = [httpGrant("a", URL, { X: "1" }), httpGrant("b", URL, {}, false), stdioGrant("c", { command: "x" })];
    expect(planServers(grants, { startupSeconds: undefined, toolSeconds: 7 }, profileFor(VERSION))).toEqual({
      servers: {
        a: { url: URL, http_headers: { X: "1" }, required: true, tool_timeout_sec: 7 },
        b: { url: URL, tool_timeout_sec: 7 },
        c: { command: "x", required: true, tool_timeout_sec: 7 },
      },
      gaps: [],
    });
  });

  it("leaves out an optional direct_http grant and records it [R26]", () => {
    expect(planServers([direct("web", false)], NO_TIMEOUTS, profileFor(VERSION))).toEqual({
      servers: {},
      gaps: [{ code: "tool_grant_skipped", detail: "web" }],
    });
  });

  it.each(["Sales DX", "ai.exa/exa", "名前", "", "__proto__"])("leaves out an optional grant called %j and records it [R28 B4]", (name) => {
    const plan = planServers([httpGrant(name, URL, {}, false), httpGrant("ok", URL)], NO_TIMEOUTS, profileFor(VERSION));
    expect(Object.keys(plan.servers)).toEqual(["ok"]);
    expect(plan.gaps).toEqual([{ code: "mcp_server_skipped", detail: name }]);
    expect(({} as Record<string, unknown>)["url"]).toBeUndefined();
  });

  it("takes names of JavaScript's own for what they are [B4]", () => {
    const plan = planServers([httpGrant("constructor", URL), httpGrant("toString", URL)], NO_TIMEOUTS, profileFor(VERSION));
    expect(Object.keys(plan.servers)).toEqual(["constructor", "toString"]);
  });

  it.each([httpGrant("a.b", URL), direct("web", true)])("never goes on without a required grant [R25 R27]", (grant) => {
    expect(() => planServers([grant], NO_TIMEOUTS, profileFor(VERSION))).toThrow(
      expect.objectContaining({ code: "config_invalid", message: `The required grant "${grant.name}" is not one that Codex can use.` }),
    );
  });

  it("runs names that make Codex alter its tool names, and records them [B4]", () => {
    const long = "n".repeat(39);
    const grants = [httpGrant("a-b", URL), httpGrant("a_b", URL), httpGrant(long, URL), httpGrant("n".repeat(38), URL)];
    const plan = planServers(grants, NO_TIMEOUTS, profileFor(VERSION));
    expect(Object.keys(plan.servers)).toHaveLength(4);
    expect(plan.gaps).toEqual([
      { code: "mcp_tool_names_altered", detail: '{"server_name":"a-b","same_as":"a_b"}' },
      { code: "mcp_tool_names_altered", detail: '{"server_name":"a_b","same_as":"a-b"}' },
      { code: "mcp_tool_names_altered", detail: `{"server_name":"${long}"}` },
    ]);
    const newer = planServers(grants, NO_TIMEOUTS, profileFor("0.171.0")).gaps.map(({ detail }) => detail);
    expect(newer).toEqual(plan.gaps.slice(0, 2).map(({ detail }) => detail));
  });
});
