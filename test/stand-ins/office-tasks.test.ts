// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { expectedOutcomes, officeTasks, tasks, type TaskRow } from "../../examples/stand-ins/office-tasks.ts";
import { startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { scriptIn, type Script } from "../../examples/stand-ins/script.ts";
import { toolGrantSchema, type McpGrant } from "../../src/contract/grant.ts";
import { grantRefusals } from "../../src/contract/rules/grants.ts";
import { tempDir } from "../support/temp-dir.ts";
import { codexVersions } from "../support/attempt.ts";
import { runCodex } from "./codex-session.ts";

const SERVERS = { mcpUrl: "http://127.0.0.1:9/mcp", mintToken: (session: string) => `token-of-${session}` };
const ROWS = officeTasks({ ...SERVERS, brokenUrl: "http://127.0.0.1:9/down" });
const WORKING = expectedOutcomes().filter(({ status }) => status === "completed");

function rowOf(id: string): TaskRow {
  const row = ROWS.find((row) => row.id === id);
  if (row === undefined) throw new Error(`there is no task ${id}`);
  return row;
}

function scriptOf(row: TaskRow): Script {
  const script = scriptIn(String(row["input"]));
  if (script === null) throw new Error(`${row.id} has no script`);
  return script;
}

function placeFiles(row: TaskRow, dir: string): void {
  for (const { path, content } of row["files"] as { path: string; content: string }[]) writeFileSync(join(dir, path), content);
}

test("the quickstart has 20 different tasks, half of them with at least 8 model calls", () => {
  expect(new Set(ROWS.map(({ id }) => id)).size).toBe(20);
  expect(new Set(ROWS.map((row) => row["input"])).size).toBe(20);
  expect(WORKING.filter(({ min_model_calls: calls }) => calls >= 8).length).toBeGreaterThanOrEqual(10);
});

test("one is refused, one has a server that is down, one meets a tool error and one a cut stream", () => {
  const statuses = expectedOutcomes().map(({ status }) => status);
  expect([statuses.filter((status) => status === "refused").length, statuses.filter((status) => status === "failed").length]).toEqual([
    1, 1,
  ]);
  const inputs = ROWS.map((row) => String(row["input"]));
  expect(inputs.filter((input) => input.includes("travel-policy-2025"))).toHaveLength(1);
  expect(inputs.filter((input) => input.includes('"kind":"cut"'))).toHaveLength(1);
});

test("only the task that expects it is refused for its grants", () => {
  const refusals = ROWS.map((row) => grantRefusals((row["tool_grants"] as unknown[]).map((grant) => toolGrantSchema.parse(grant))));
  expect(refusals.map(([refusal]) => refusal?.code ?? null)).toEqual(
    expectedOutcomes().map(({ status, cause_code: code }) => (status === "refused" ? code : null)),
  );
});

test("every grant is one of the contract's, with a token of its task's own", () => {
  for (const row of ROWS) {
    const grants = (row["tool_grants"] as unknown[]).map((grant) => toolGrantSchema.parse(grant));
    const office = grants.find((grant): grant is McpGrant => grant.name === "office" && grant.type === "mcp");
    expect(office?.connection).toMatchObject({ headers: { "X-NeMo-Gym-Session-Token": `token-of-${row.id}` } });
  }
});

test("a real model does not find the script in its prompt", () => {
  const rows = officeTasks({ ...SERVERS, brokenUrl: "http://127.0.0.1:9/down", scripts: false });
  expect(rows.map((row) => scriptIn(String(row["input"])))).toEqual(rows.map(() => null));
});

test("more than 20 repeat them under new ids", () => {
  const rows = officeTasks({ ...SERVERS, brokenUrl: "http://127.0.0.1:9/down", count: 45 });
  expect(new Set(rows.map(({ id }) => id)).size).toBe(45);
  expect(rows[40]?.id).toBe("invoice-reconciliation-3");
  expect(expectedOutcomes(45).map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
});

/** Worked out by hand from the files on the desk. */
const ANSWERS: Record<string, [file: string, content: string]> = {
  "invoice-reconciliation": ["open-items.txt", "R-1042\nR-1043\n"],
  "vat-return-draft": [
    "vat.csv",
    "category,net,tax\nexport,5000.00,0.00\nreduced,400.00,28.00\nstandard,1280.00,243.20\ntotal,6680.00,271.20\n",
  ],
  "currency-conversion": [
    "balances-eur.csv",
    "account,currency,amount,eur\nZurich,CHF,9310.00,10000.00\nLeeds,GBP,842.00,1000.00\nBoston,USD,21700.00,20000.00\ntotal,EUR,,31000.00\n",
  ],
  "supplier-comparison": ["ranking.csv", "Nordlicht,90.9\nHansen,83.0\nBlitz,82.0\n"],
  "carbon-report": ["emissions.csv", "source,kg_co2e\nelectricity,4501.2\ngas,1668.3\ndiesel,554.4\ntotal,6723.9\n"],
  "sales-summary": ["summary.md", "The best region was north.\nThe weakest month was 2026-08.\n"],
  "support-tickets": ["quota.txt", "75 percent in time\n"],
  "contract-deadlines": ["deadlines.csv", "notice_by_end_of,name\n2026-12,Cleaning\n2026-12,Coffee\n2026-12,Copiers\n"],
};

test.each(WORKING)("the commands of $id write what it hands in", ({ id, deliverables }) => {
  const row = rowOf(id);
  const dir = tempDir();
  placeFiles(row, dir);
  const items = scriptOf(row).steps.flatMap(({ reply }) => reply);
  for (const item of items) if ("shell" in item) execFileSync("bash", ["-c", item.shell], { cwd: dir, stdio: "pipe" });
  for (const name of deliverables) expect(statSync(join(dir, name)).size).toBeGreaterThan(0);
  const [name, content] = ANSWERS[id] ?? [];
  if (name !== undefined) expect(readFileSync(join(dir, name), "utf8")).toBe(content);
  const finished = items.flatMap((item) => ("mcp" in item && item.mcp.tool === "finish" ? [item.mcp.args["paths"]] : []));
  expect(finished).toEqual([deliverables.map((name) => `{{workdir}}/${name}`)]);
});

// The packaged one; whole attempts are tried with both.
describe.each((await codexVersions()).slice(0, 1))("Codex $name", ({ codex }) => {
  test.each(["expense-report-check", "holiday-roster"])("%s ends as expected, over its tool error or cut stream", async (id) => {
    const [model, tools] = [await startModelServer({ apiKey: "key" }), await startOfficeTools()];
    onTestFinished(async () => {
      await Promise.all([model.close(), tools.close()]);
    });
    const row = rowOf(id);
    const expected = expectedOutcomes().find((outcome) => outcome.id === id);
    const run = await runCodex(codex, {
      baseUrl: model.captureBaseUrl.replace("{capture_key}", id),
      apiKey: "key",
      prompt: String(row["input"]),
      servers: { office: { url: tools.url, token: tools.mintToken(id) } },
      prepare: (workdir) => placeFiles(row, workdir),
    });
    expect(run.events.at(-1)?.type).toBe("turn.completed");
    expect(new Set(model.log.requests(id).map(({ request }) => request?.step)).size).toBe(expected?.min_model_calls);
    expect([...new Set(tools.calls.map(({ tool }) => tool))].sort()).toEqual(expected?.tools);
    expect(tools.calls.filter(({ outcome }) => outcome === "tool_error")).toHaveLength(id === "expense-report-check" ? 1 : 0);
    expect(model.log.requests(id).filter(({ played }) => played === "cut")).toHaveLength(id === "holiday-roster" ? 1 : 0);
    for (const name of expected?.deliverables ?? []) expect(statSync(join(run.workdir, name)).size).toBeGreaterThan(0);
  });

  test("a load task makes exactly the model calls asked for", async () => {
    const [model, tools] = [await startModelServer({ apiKey: "key", replyDelayMs: 10 }), await startOfficeTools()];
    onTestFinished(async () => {
      await Promise.all([model.close(), tools.close()]);
    });
    for (const modelCalls of [1, 27]) {
      const [row] = tasks(1, { modelCalls, servers: { mcpUrl: tools.url, mintToken: tools.mintToken } });
      const key = `calls-${modelCalls}`;
      const run = await runCodex(codex, {
        baseUrl: model.captureBaseUrl.replace("{capture_key}", key),
        apiKey: "key",
        prompt: String(row?.["input"]),
        servers: { office: { url: tools.url, token: tools.mintToken(key) } },
      });
      expect(run.events.at(-1)?.type).toBe("turn.completed");
      expect(model.log.countOf(key)).toBe(modelCalls);
    }
  });
});
