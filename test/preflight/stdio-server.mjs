#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// A tool server over stdin and stdout, placed into a sandbox by tests. First argument: works | exits | silent | noisy.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const mode = process.argv[2];
appendFileSync("starts.txt", `${mode} ${Object.keys(process.env).sort().join(",")}\n`);
if (mode === "exits") {
  process.stderr.write(`cannot log in with ${process.env.SERVER_TOKEN}\n`);
  process.exit(3);
}
if (mode === "noisy") process.stdout.write("Server starting ...\n\n");
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined || mode === "silent") return;
  const result =
    method === "initialize"
      ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "stdio", version: "1" } }
      : { tools: [{ name: "note", description: "Notes.", inputSchema: { type: "object", properties: {} } }] };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
});
