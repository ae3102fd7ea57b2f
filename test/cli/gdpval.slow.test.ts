// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { serveOnLoopback } from "../../examples/stand-ins/loopback.ts";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { filesHolding } from "../support/byte-search.ts";
import { gdpvalRows, referenceText, writeReferences, type GdpvalRow } from "../support/gdpval-rows.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

const KEY = "stand-in-key-of-gdpval";

// The five sample rows of the benchmark, with small files in place of theirs: those of the last row are fetched over HTTP.
it("runs the sample rows of GDPVal as they are: files in, deliverables and finish_params.json out, rows back [R46]", async () => {
  const root = tempDir();
  mkdirSync(join(root, "run"), { mode: 0o700 });
  const [model, office] = [await startModelServer({ apiKey: KEY }), await startOfficeTools()];
  const asked: string[] = [];
  const files = await serveOnLoopback((request, response) => {
    asked.push(request.url ?? "");
    response.end(`fetched ${decodeURIComponent(request.url ?? "")}`);
  });
  onTestFinished(() => Promise.all([model.close(), office.close(), files.close()]).then(() => undefined));
  const rows = gdpvalRows();
  for (const [index, row] of rows.entries()) {
    const hand = [step(shell("cat reference_files/* > work.txt; mkdir -p sub; echo more > sub/more.txt"))];
    const paths = ["/workspace/work.txt", "/workspace/sub/more.txt"];
    const finish = index === 1 ? [] : [step(mcp("office", "finish", { reason: row.task_id, paths }))]; // the second never hands in
    row.prompt += `\n${scriptLine({ steps: [...hand, ...finish, step(say("done"))] })}`;
    if (index === 4) row.reference_file_urls = row.reference_files.map((path) => `${files.origin}/${encodeURIComponent(path)}`);
    else writeReferences(root, row);
  }
  writeFileSync(join(root, "tasks.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const token = office.mintToken("gdpval");
  writeFileSync(
    join(root, "rollcall.toml"),
    `[references]\nallow_url_hosts = ["${new URL(files.origin).host}"]\n[[tool_grants]]\nname = "office"\ntype = "mcp"\nrequired = true\n` +
      `[tool_grants.connection]\ntransport = "streamable_http"\nurl = "${office.url}"\nheaders = { ${JSON.stringify(SESSION_TOKEN_HEADER)} = ${JSON.stringify(token)} }\n`,
  );
  const out = join(root, "out");
  const args = ["run", join(root, "tasks.jsonl"), "--out", out, "--config", join(root, "rollcall.toml"), "--model", "stand-in"];
  const env = { OPENAI_API_KEY: KEY, XDG_STATE_HOME: join(root, "state"), XDG_RUNTIME_DIR: join(root, "run"), TMPDIR: root };
  const start = () => rollcall([...args, "--model-base-url", model.captureBaseUrl], { env });
  const ended = await start();
  expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining("reading or fetching 40 reference files") as string });
  expect(asked).toHaveLength(17);

  const results = readFileSync(join(out, "results.jsonl"), "utf8").trim().split("\n");
  const byTask = new Map(
    results.map((line) => JSON.parse(line) as ActivationResult & { row: GdpvalRow }).map((one) => [one.task_id.task_id, one]),
  );
  for (const [index, row] of rows.entries()) {
    const result = byTask.get(row.task_id);
    expect(result).toMatchObject({ status: "completed", row, cause_class: index === 1 ? "agent" : null });
    const place = join(out, `task_${row.task_id}`, "repeat_0");
    const params = JSON.parse(readFileSync(join(place, "finish_params.json"), "utf8")) as unknown;
    if (index === 1) {
      expect(params).toBeNull();
      continue;
    }
    expect(params).toEqual({ reason: row.task_id, paths: ["/workspace/work.txt", "/workspace/sub/more.txt"] });
    const work = readFileSync(join(place, "work.txt"), "utf8");
    for (const path of row.reference_files) expect(work).toContain(index === 4 ? `fetched /${path}` : referenceText(path));
    expect(readFileSync(join(place, "sub/more.txt"), "utf8")).toBe("more\n");
  }
  // Rows and files go around Redis: only their prompts are in its append-only file.
  const queue = (text: string) => filesHolding(join(root, "state"), text).filter((file) => file.includes("appendonly"));
  expect(queue(rows[0]!.task_id)).not.toEqual([]);
  for (const text of ["rubric_item_id", "local reference_files/", token]) expect(queue(text)).toEqual([]);

  const calls = model.log.total;
  expect(await start()).toMatchObject({ code: 0, stderr: expect.stringContaining("5 done before") as string });
  expect([model.log.total, asked.length]).toEqual([calls, 17]);
}, 180_000);
