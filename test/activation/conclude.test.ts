// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { concludeSession } from "../../src/activation/conclude.ts";
import { Session } from "../../src/codex/session.ts";
import { buildSecretSet } from "../../src/redact/index.ts";
import { profileFor } from "../../src/codex/profile.ts";

const AUTH_FAILED =
  "2026-11-29T18:06:10.562209Z ERROR codex_core::session: Failed to create session: required MCP servers failed to initialize: " +
  "office: handshaking with MCP server failed: Send message error Transport [X] error: unexpected server response: HTTP 401: no\n";

function conclude(values: string[], session = new Session("k"), stderr = "") {
  return concludeSession(buildSecretSet(values.map((value) => ({ value }))), {
    invocation_id: "k",
    transcripts: null,
    memory: { oom_killed: null, memory_limit_reached: null },
    stopped: null,
    requiredTools: [],
    toolsNotOffered: () => [],
    refusedTools: () => ({ server_names: [], tools: [] }),
    grantedServers: ["office"],
    profile: profileFor("0.144.4"),
    facts: session.facts(),
    stderr: {
      text: stderr,
      startsMidStream: false,
    },
    exit: {
      started: true,
      code: 1,
      signal: null,
    },
  });
}

it("finds the cause of a failed start although a header's value is a piece of what Codex says of it", () => {
  const { outcome } = conclude(["1"], new Session("k"), AUTH_FAILED);
  expect(outcome.failure).toMatchObject({ cause_code: "mcp_server_auth", server_names: ["office"] });
  expect(outcome.failure?.failure_reason).toContain("HTTP 40[redacted]: no");
});

it("leaves what the model said whole where a header's value is one character, unless it is all that was said", () => {
  const session = new Session("k");
  const said = (id: string, text: string) =>
    session.apply({
      kind: "event",
      at: 1,
      value: {},
      bytes: 10,
      event: {
        type: "item.completed",
        item: {
          id,
          type: "agent_message",
          text,
        },
      },
    });
  said("item_0", "11 of 21 are done");
  said("item_1", "1");
  const texts = conclude(["1"], session).facts.items.flatMap((item) =>
    item.type === "message" ? item.content.map(({ text }) => text) : [],
  );
  expect(texts).toEqual(["11 of 21 are done", "[redacted]"]);
});
