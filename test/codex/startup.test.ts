// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { startupCause } from "../../src/codex/startup.ts";
import { played, recordings, VERSIONS } from "./recordings.ts";
import { profileFor } from "../../src/codex/profile.ts";

const unreachable = ["mcp_server_unreachable", "gdpval"];
const protocol = ["mcp_server_protocol", "gdpval"];
const auth = ["mcp_server_auth", "gdpval"];
const invalid = ["config_invalid"];

/** Cause and servers, by group and case; read from Codex's texts by hand. */
const CAUSES: Record<string, Record<string, string[]>> = {
  startup: {
    "conn-refused-required": unreachable,
    "dns-fail-required": unreachable,
    "socket-close-required": unreachable,
    "http-500-html-required": unreachable,
    "http-503-empty-required": unreachable,
    "redirect-required": unreachable,
    "http-404-required": protocol,
    "200-jsonrpc-error-required": protocol,
    "200-not-mcp-html-required": protocol,
    "200-not-mcp-json-required": protocol,
    "http-401-long-echo-required": auth,
    "http-401-www-auth-required": auth,
    "http-403-json-echo-required": auth,
    "hang-required": ["mcp_startup_timeout", "gdpval"],
    "bad-url-required": [...invalid, "gdpval"],
    "ftp-url-required": [...invalid, "gdpval"],
    "name-space-required": [...invalid, "bad name"],
    "name-unicode-required": [...invalid, "bäd"],
    "two-required-fail-required": ["mcp_server_unreachable", "gdpval", "second"],
  },
  stdio: {
    exit: ["mcp_server_unreachable", "st"],
    "missing-binary": ["mcp_server_unreachable", "st"],
    hang: ["mcp_startup_timeout", "st"],
  },
  config: {
    "mcp-bearer-env-missing": [...invalid, "gdpval"],
    "mcp-env-headers-missing": auth,
    "mcp-st-zero": ["mcp_startup_timeout", "gdpval"],
    "toml-syntax": invalid,
    "toml-dup-key": invalid,
    "idle-float": invalid,
    "provider-missing": invalid,
    "unknown-top-strict": invalid,
    "unknown-mcp-key-strict": invalid,
    "config-is-dir": invalid,
    "untrusted-bad-flag": invalid,
    "codex-home-missing": ["unknown"],
    ro_CODEX_HOME: ["unknown"],
    "no-git-check": ["unknown"],
  },
  prompt: { big1500k: ["unknown"], empty: ["unknown"], invalid: ["unknown"], whitespace: ["unknown"] },
};
const GRANTED = ["st", "second", "gdpval", "bad name", "bäd"];

describe.each(VERSIONS)("startup failures of Codex %s", (version) => {
  const cases = Object.entries(CAUSES).flatMap(([group, causes]) => {
    const recorded = recordings(version, group);
    return Object.entries(causes).map(([name, [cause, ...servers]]) => ({ group, name, cause, servers, recording: recorded[name]! }));
  });
  it.each(cases)("$group/$name is told from stderr: $cause $servers [R10 R52]", async ({ recording, cause, servers }) => {
    const { verdict } = await played(recording);
    expect(verdict).toEqual({ kind: "startup_failed", error: expect.stringMatching(/^Codex exited with code \d+ before a turn started$/) });
    const told = startupCause(recording.stderr, GRANTED, profileFor(version));
    expect([told.cause_code, ...told.servers.map(({ name }) => name)]).toEqual([cause, ...servers]);
  });

  it("no required server that failed let anything be said, and no model call be seen [R8 R9]", async () => {
    for (const [name, recording] of Object.entries(recordings(version, "startup"))) {
      if (!(name in CAUSES["startup"]!)) continue;
      const { facts } = await played(recording);
      expect([name, facts.turnStarted, facts.items, facts.modelAnswered]).toEqual([name, false, [], false]);
    }
  });
});

describe("startupCause", () => {
  const failed = (reason: string): string => `Error: thread/start: required MCP servers failed to initialize: ${reason} (code -32603)`;

  it("is not told what to think by a server's answer", () => {
    const body = "x; a: timed out handshaking with MCP server after 1s Auth required\nError loading config.toml: no";
    expect(
      startupCause(failed(`a: handshaking with MCP server failed: JSON-RPC error: -1: ${body}`), ["a", "b"], profileFor("0.144.4")),
    ).toEqual({
      cause_code: "mcp_server_protocol",
      servers: [{ name: "a", cause: "mcp_server_protocol" }],
    });
  });

  it("reports what another attempt cannot change before what it may, and each server's own cause", () => {
    const text = failed(
      "a: timed out handshaking with MCP server after 1s; b: handshaking with MCP server failed: Send message error Transport [x] error: Auth required, when send",
    );
    expect(startupCause(text, ["b", "a"], profileFor("0.144.4"))).toEqual({
      cause_code: "mcp_server_auth",
      servers: [
        { name: "a", cause: "mcp_startup_timeout" },
        { name: "b", cause: "mcp_server_auth" },
      ],
    });
  });

  it.each(["", "thread 'main' panicked", failed("a: something new"), failed("other: timed out handshaking with MCP server after 1s")])(
    "says unknown rather than guess: %s",
    (stderr) => {
      expect(startupCause(stderr, ["a"], profileFor("0.144.4")).cause_code).toBe("unknown");
    },
  );

  it("knows a sandbox that found no Codex", () => {
    expect(startupCause("bwrap: execvp /opt/runtime/bin/codex: No such file or directory\n", [], profileFor("0.144.4")).cause_code).toBe(
      "binary_missing",
    );
  });
});
