// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { handedInPaths, type AgentCalls } from "../../src/artifacts/submission.ts";
import { toolCallRecord } from "../../src/codex/tool-calls.ts";
import type { ResponseItem } from "../../src/contract/response.ts";

function call(name: string, args: unknown, status: "completed" | "incomplete" = "completed"): ResponseItem {
  const text = typeof args === "string" ? args : JSON.stringify(args);
  return { type: "function_call", id: "i", call_id: "c", name, arguments: text, status };
}

test.each<[why: string, items: ResponseItem[], paths: string[]]>([
  ["nothing was called", [], []],
  [
    "the last successful call counts",
    [call("finish", { paths: ["a"] }), call("finish", { paths: ["b", "c"] }), call("finish", { paths: ["d"] }, "incomplete")],
    ["b", "c"],
  ],
  ["another tool's paths do not", [call("finish", { paths: ["a"] }), call("other", { paths: ["b"] })], ["a"]],
  ["a call without paths handed in nothing", [call("finish", { paths: ["a"] }), call("finish", { reason: "done" })], []],
  ["a JSON list as text is read", [call("finish", { paths: '["a","b"]' })], ["a", "b"]],
  ["a bare name is one path", [call("finish", { paths: "a.docx" })], ["a.docx"]],
  ["what is no text is left out", [call("finish", { paths: ["a", 1, null, ["b"]] })], ["a"]],
  ["arguments that are no JSON hand in nothing", [call("finish", "{half")], []],
  ["arguments that are no object hand in nothing", [call("finish", null), call("finish", [1])], []],
])("handed-in paths: %s", (_why, items, paths) => {
  expect(handedInPaths([{ items, toolCalls: [] }], ["finish", "submit"])).toEqual(paths);
});

test("handed-in paths: of several agents the one counts that called last, whichever it is", () => {
  const agent = (path: string, second: number): AgentCalls => {
    const record = toolCallRecord(
      { toolName: "finish", serverName: "office", failed: false, errorType: null },
      { invocationId: path, id: "c", startedAt: second, completedAt: second },
    );
    return { items: [call("finish", { paths: [path] })], toolCalls: [record] };
  };
  expect(handedInPaths([agent("root", 1), agent("sub", 2)], ["finish"])).toEqual(["sub"]);
  expect(handedInPaths([agent("root", 3), agent("sub", 2), agent("other", 1)], ["finish"])).toEqual(["root"]);
});
