// SPDX-License-Identifier: Apache-2.0
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, reasoning, say, scriptLine, shell, step, withFault, type Step } from "../../examples/stand-ins/script.ts";
import { replayAttempt } from "../../src/activation/replay.ts";
import type { Attempt } from "../../src/contract/result.ts";
import { buildSecretSet } from "../../src/redact/index.ts";
import { attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { resultOf } from "../support/result-documents.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { tempDir } from "../support/temp-dir.ts";

const RECORDED = fileURLToPath(new URL("../fixtures/replay/", import.meta.url));
const TOKEN = 'tok "q" \\b %41 zz-replay-zz';
const dir = suiteDir();

/** A recorded attempt that a test may spoil. */
function copyOf(name: string): { directory: string; change: (file: string, change: (text: string) => string) => void } {
  const directory = join(tempDir(), name);
  cpSync(join(RECORDED, name), directory, { recursive: true });
  const change = (file: string, edit: (text: string) => string): void => {
    const path = join(directory, file);
    writeFileSync(path, edit(readFileSync(path, "utf8")));
  };
  return { directory, change };
}

describe("a recorded attempt", () => {
  it.each(readdirSync(RECORDED).filter((name) => !name.endsWith(".md")))("ends again as it did: %s", async (name) => {
    const replay = await replayAttempt(join(RECORDED, name));
    expect(replay?.differences).toEqual([]);
    expect(replay?.replayed).toEqual(replay?.recorded);
  });

  it("shows what came out otherwise when something else is read or concluded", async () => {
    const spoilt = copyOf("startup-401-0.171.0");
    spoilt.change("stderr.log", (text) => text.replaceAll("HTTP 401", "HTTP 500"));
    const replay = await replayAttempt(spoilt.directory);
    expect(replay?.replayed.failure?.cause_code).toBe("mcp_server_unreachable");
    expect(replay?.differences).toContainEqual({
      path: "failure.cause_code",
      recorded: "mcp_server_auth",
      replayed: "mcp_server_unreachable",
    });

    const shorter = copyOf("completed-0.144.4");
    shorter.change("events.jsonl", (text) =>
      text
        .split("\n")
        .filter((line) => !line.includes('"turn.completed"'))
        .join("\n"),
    );
    expect((await replayAttempt(shorter.directory))?.differences).toContainEqual({
      path: "status",
      recorded: "completed",
      replayed: "failed",
    });
  });

  it("is redacted again, where its evidence was kept as it came", async () => {
    const raw = copyOf("startup-401-0.171.0");
    raw.change("stderr.log", (text) => text.replaceAll("[redacted]", TOKEN));
    expect(readFileSync(join(raw.directory, "stderr.log"), "utf8")).toContain("zz-replay-zz");
    const replay = await replayAttempt(raw.directory, buildSecretSet([{ value: TOKEN }]));
    expect(JSON.stringify(replay)).not.toContain("zz-replay-zz");
    expect(replay?.differences).toEqual([]);
    expect(JSON.stringify(await replayAttempt(raw.directory))).toContain("zz-replay-zz"); // the same search finds it when nothing is redacted
  });

  it("is replayed by the command: exit 0 when equal, 1 when not, 2 when there is none; activations and tasks are named [fault D6]", async () => {
    const equal = await rollcall(["replay", join(RECORDED, "completed-0.144.4")]);
    expect(equal).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("equal (completed)") });

    const spoilt = copyOf("startup-401-0.171.0");
    spoilt.change("stderr.log", (text) => text.replaceAll("HTTP 401", "HTTP 500"));
    const different = await rollcall(["replay", spoilt.directory]);
    expect(different).toMatchObject({ code: 1, stdout: expect.stringContaining('failure.cause_code\n    recorded: "mcp_server_auth"') });
    const json = await rollcall(["replay", "--json", spoilt.directory]);
    expect(JSON.parse(json.stdout)).toMatchObject({ replayed: { failure: { cause_code: "mcp_server_unreachable" } } });

    const out = tempDir();
    cpSync(join(RECORDED, "completed-0.144.4"), join(out, "artifacts/act-run-memo/attempt-0"), { recursive: true });
    const result = resultOf("act-run-memo", { task_id: { taskset: "office", task_id: "memo" } });
    writeFileSync(join(out, "results.jsonl"), `${JSON.stringify(result)}\n`);
    for (const id of ["act-run-memo", "memo"])
      expect(await rollcall(["replay", id, "--out", out])).toMatchObject({ code: 0, stdout: expect.stringContaining("equal (completed)") });
    expect(await rollcall(["replay", "mem", "--out", out])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/did you mean .*memo/),
    });

    const none = await rollcall(["replay", tempDir()]);
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining("holds no attempt") });
    spoilt.change("attempt.json", () => "{}");
    expect(await rollcall(["replay", spoilt.directory])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no attempt of this version"),
    });
  });
});

describe.each(await codexVersions())("an attempt just made with Codex $name", ({ name, codex }) => {
  let model: ModelServer;
  let office: OfficeTools;
  let runner: AttemptRunner;
  beforeAll(async () => {
    [model, office] = [await startModelServer({ apiKey: TEST_KEY }), await startOfficeTools()];
    runner = await attemptRunner(`${dir}/${name}`, codex);
  });
  afterAll(() => Promise.all([model.close(), office.close()]));

  const grant = (url: string, headers: Record<string, string>) => ({
    type: "mcp",
    name: "office",
    required: true,
    connection: {
      transport: "streamable_http",
      url,
      headers: {
        ...headers,
        "X-Spread": TOKEN,
        "X-Short": "q7",
      },
    },
  });
  async function attemptOf(id: string, steps: Step[], more: Record<string, unknown>): Promise<{ attempt: Attempt; directory: string }> {
    const { attempt } = await runner.outcome({
      task_id: { taskset: "t", task_id: id },
      input: `Do the work.\n${scriptLine({ steps })}`,
      model: { name: "stand-in", base_url: model.captureBaseUrl },
      max_attempts: 1,
      ...more,
    });
    return { attempt, directory: join(runner.store, `act-run1-${id}`, "attempt-0") };
  }

  it("comes to the same outcome, evidence and observations from what was kept of it", async () => {
    const token = (id: string): Record<string, string> => ({ "X-NeMo-Gym-Session-Token": office.mintToken(id, null) });
    const broken = await startBrokenServer("status", { echo: "raw", echoHeader: "x-spread" });
    const id = (text: string): string => `${text}-${name.replaceAll(".", "_")}`;
    const all = [
      await attemptOf(
        id("completed"),
        [
          step(reasoning("First I look."), shell(`echo seen 1; sleep 0.4; echo '${TOKEN}'; exit 3`)),
          step(mcp("office", "finish", { reason: `done, ${TOKEN}`, paths: [] })),
          step(say(`The token is ${TOKEN}.`)),
        ],
        { tool_grants: [grant(office.url, token("c"))], required_tools: ["finish", "submit"] },
      ),
      await attemptOf(id("startup"), [step(say("x"))], { tool_grants: [grant(broken.url, {})] }),
      await attemptOf(id("wall"), [step(shell("echo x; sleep 60")), step(say("late"))], { codex: { timeout_seconds: 5 } }),
      await attemptOf(id("failed"), [withFault(step(say("x")), { kind: "status", status: 400, body: '{"error":{"message":"no"}}' })], {}),
    ];
    await broken.close();
    // Nobody offers `submit`; the worker asked the server for its tools when the session had ended without it.
    expect(all.map(({ attempt }) => [attempt.status, attempt.cause_class])).toEqual([
      ["completed", "grant"],
      ["failed", "grant"],
      ["incomplete", "limit"],
      ["failed", "model_provider"],
    ]);
    for (const { attempt, directory } of all) {
      const replay = await replayAttempt(directory);
      expect(replay?.differences, directory).toEqual([]);
      expect(replay?.recorded).toMatchObject({ status: attempt.status, failure: attempt.failure });
      // Redacting what is redacted changes nothing.
      expect((await replayAttempt(directory, buildSecretSet([{ value: TOKEN }, { value: "q7" }])))?.differences, directory).toEqual([]);
    }
  });
});
