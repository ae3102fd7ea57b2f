// SPDX-License-Identifier: Apache-2.0
import { readdir, readFile } from "node:fs/promises";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import { describe, expect, test } from "vitest";
import { jsonSchemas } from "../../src/contract/json-schema.ts";
import { resultSchema } from "../../src/contract/result.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";

/** The written files, read by a validator that is not zod. */
async function check(file: string, document: unknown): Promise<string | null> {
  const schema = JSON.parse(await readFile(`schemas/${file}`, "utf8")) as Parameters<AjvJsonSchemaValidator["getValidator"]>[0];
  const answer = new AjvJsonSchemaValidator().getValidator(schema)(document);
  return answer.valid ? null : answer.errorMessage;
}

test("schemas/ is in step with the contract (npm run schemas writes it)", async () => {
  const written = Object.fromEntries(
    await Promise.all((await readdir("schemas")).map(async (file) => [file, await readFile(`schemas/${file}`, "utf8")] as const)),
  );
  const expected = Object.fromEntries(
    Object.entries(jsonSchemas()).map(([file, schema]) => [file, `${JSON.stringify(schema, null, 2)}\n`]),
  );
  expect(written).toEqual(expected);
});

describe("schemas/activation.json", () => {
  const smallest = { task_id: { taskset: "office", task_id: "a/b" }, input: "Write a report" };
  const rich = {
    ...smallest,
    schema: "rollcall.activation/1",
    input: [
      { role: "system", content: "Be brief" },
      { role: "user", content: [{ type: "input_text", text: "Write" }] },
    ],
    tool_grants: [
      {
        type: "mcp",
        name: "office",
        required: true,
        connection: { transport: "streamable_http", url: "http://127.0.0.1:1/mcp", headers: { A: "b" } },
      },
      { type: "mcp", name: "local", required: false, connection: { transport: "stdio", command: "node", args: ["x"] } },
      { type: "direct_http", name: "x.direct_http", required: false, base_url: "http://127.0.0.1:1" },
    ],
    sandbox: { files: [{ path: "a.txt", content: "a" }], env: { A: "b", B: { value: "c", secret: true } } },
    reply_to: null,
  };

  test("takes what producers write, ids and defaults left out", async () => {
    expect(await check("activation.json", smallest)).toBeNull();
    expect(await check("activation.json", rich)).toBeNull();
  });

  test.each([
    ["no input", { task_id: smallest.task_id }],
    ["an unknown field", { ...smallest, temperature: 1 }],
    ["an unknown transport", { ...rich, tool_grants: [{ ...rich.tool_grants[0], connection: { transport: "sse", url: "http://x" } }] }],
    ["an activation id with a colon", { ...smallest, activation_id: "a:b" }],
    ["a results queue of another name", { ...smallest, reply_to: "activations" }],
  ])("refuses %s", async (_what, document) => {
    expect(await check("activation.json", document)).toEqual(expect.any(String));
  });
});

describe("schemas/result.json", () => {
  const result = resultOf("act-1", {
    attempts: [attemptOf(0)],
    observations: { source: "codex", records: [], gaps: [{ code: "egress_refused" }] },
  });

  test("takes a result, and an attempt.json by itself", async () => {
    expect(resultSchema.safeParse(result).success).toBe(true);
    expect(await check("result.json", result)).toBeNull();
    expect(await check("attempt.json", attemptOf(1))).toBeNull();
  });

  test("refuses an unknown status and a gap that is not in the list", async () => {
    expect(await check("result.json", { ...result, status: "done" })).toEqual(expect.any(String));
    expect(await check("observations.json", { source: "codex", records: [], gaps: [{ code: "oops" }] })).toEqual(expect.any(String));
  });
});
