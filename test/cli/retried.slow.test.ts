// SPDX-License-Identifier: Apache-2.0
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Summary } from "../../src/rollout/summary.ts";
import { fakeCommand, type FakeCommand } from "../support/fake-command.ts";

// Attempts on real parts but for Codex: what is tried again, and what is not. Runs that are started again: resume.long.test.ts.

const QUICK = ["--concurrency", "3", "--probe", "0"];

function summaryOf({ out }: FakeCommand): Summary {
  return JSON.parse(readFileSync(join(out, "summary.json"), "utf8")) as Summary;
}

/** Artifacts' directory of a task, e.g. to see how often it ran. */
function attemptsOf(command: FakeCommand, task: string): string[] {
  const { activation_id } = command.results().get(task)!;
  return readdirSync(join(command.out, "artifacts", activation_id))
    .filter((name) => name.startsWith("attempt-"))
    .sort();
}

it("a task whose first attempt failed and whose second one worked counts once, and both are kept [E4]", async () => {
  const command = await fakeCommand(
    `grep -q -- '-a1[/"]' "$CODEX_HOME/config.toml" || { echo "the first one fails" >&2; exit 1; }\nturn done`,
  );
  writeFileSync(join(command.root, "rollcall.toml"), "[retry]\nbase_seconds = 0.2\n");
  expect(await command.run([{ id: "t0", input: "x" }], "--config", join(command.root, "rollcall.toml"))).toMatchObject({ code: 0 });
  const result = command.results().get("t0")!;
  expect(result).toMatchObject({ status: "completed", capture_key: expect.stringMatching(/-a1$/) as string });
  expect(result.attempts.map(({ status, capture_key }) => [status, capture_key.endsWith("-a1")])).toEqual([
    ["failed", false],
    ["completed", true],
  ]);
  expect(attemptsOf(command, "t0")).toEqual(["attempt-0", "attempt-1"]);
  for (const [number, what] of [
    ["0", "the first one fails"],
    ["1", "agent_invocation"],
  ] as const) {
    const directory = join(command.out, "artifacts", result.activation_id, `attempt-${number}`);
    expect(existsSync(join(directory, "events.jsonl"))).toBe(true);
    expect(
      JSON.stringify((JSON.parse(readFileSync(join(directory, "attempt.json"), "utf8")) as { observations: unknown }).observations),
    ).toContain(what);
  }
  expect(readFileSync(join(command.out, "results.jsonl"), "utf8").trim().split("\n")).toHaveLength(1);
  expect(summaryOf(command)).toMatchObject({ total: 1, missing: 0, by_status: { completed: 1, failed: 0 } });
});

it("what fails for good does so at once, without another attempt, and is counted by its cause [E21]", async () => {
  const command = await fakeCommand(`[ "$prompt" = bad ] && { echo "Error loading config.toml: bad" >&2; exit 1; }\nturn "$prompt"`);
  const rows = [
    { id: "fine", input: "x" },
    ...["bad-0", "bad-1"].map((id) => ({ id, input: "bad" })),
    ...["image-0", "image-1"].map((id) => ({ id, input: "x", sandbox: { image: "no/such:image" } })),
    { id: "provider", input: "x", sandbox: { provider: "docker" } },
    {
      id: "grant",
      input: "x",
      tool_grants: [{ type: "mcp", name: "office", connection: { transport: "streamable_http", url: "ftp://x" } }],
    },
  ];
  const { code, stdout, stderr } = await command.run(rows, ...QUICK, "--skip-invalid");
  expect(code).toBe(1);
  const results = command.results();
  for (const id of ["bad-0", "bad-1"]) {
    const { failure, attempts } = results.get(id)!;
    expect({ ...failure, attempts: attempts.length }).toMatchObject({ cause_code: "config_invalid", terminal: true, attempts: 1 });
  }
  for (const id of ["image-0", "image-1", "provider", "grant"]) {
    const { status, failure, attempts } = results.get(id)!;
    expect({ status, ...failure, attempts }).toMatchObject({ status: "refused", terminal: true, status_code: 422, attempts: [] });
  }
  const { by_cause_code } = summaryOf(command);
  expect(by_cause_code["config_invalid"]).toBe(2);
  expect(Object.values(by_cause_code).reduce((sum, count) => sum + count, 0)).toBe(6);
  expect(stdout + stderr).toMatch(/2 config_invalid/);

  command.env["CODEX_BIN"] = join(command.root, "nowhere", "codex");
  rmSync(command.out, { recursive: true });
  const missing = await command.run(rows, "--skip-invalid");
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringMatching(/nowhere\/codex does not exist/) as string });
});
