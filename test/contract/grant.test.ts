// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { overlayGrants, type ToolGrant } from "../../src/contract/grant.ts";

function grant(name: string, url: string, headers: Record<string, string> = {}): ToolGrant {
  return { type: "mcp", name, required: true, connection: { transport: "streamable_http", url, headers } };
}

it("an episode's grant replaces a configured one of the same name whole, and no header of the latter stays [R7]", () => {
  const configured = [grant("office", "http://a/mcp", { A: "configured", B: "kept?" }), grant("files", "http://b/mcp")];
  const episode = [grant("office", "http://c/mcp", { A: "episode" })];
  expect(overlayGrants(configured, episode)).toEqual([configured[1], episode[0]]);
});
