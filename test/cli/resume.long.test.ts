// SPDX-License-Identifier: Apache-2.0
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { connectRedis } from "../../src/redis/connect.ts";
import type { Summary } from "../../src/rollout/summary.ts";
import { besides, fakeCommand, type FakeCommand } from "../support/fake-command.ts";
import { startTestRedis } from "../support/redis.ts";

// The same command again, on real parts but for Codex: what runs once more, and what stays. Without queue and workers: test/rollout/rollout.test.ts.

/** Ends as its prompt says. */
const AS_TOLD = `case "$prompt" in
  agent) echo '{"type":"turn.started"}'
    echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"I gave up"}}'
    echo '{"type":"turn.failed","error":{"message":"it gave up"}}'; exit 1;;
  infra) echo '{"type":"turn.started"}'; kill -9 $$;;
  startup) echo "the disk is on fire" >&2; exit 1;;
esac
turn "$prompt"`;
const ROWS = ["ok", "ok", "ok", "ok", "agent", "agent", "infra", "infra", "startup", "never"].map((input, n) => ({ id: `t${n}`, input }));
const QUICK = ["--concurrency", "3", "--probe", "0"];

function summaryOf({ out }: FakeCommand): Summary {
  return JSON.parse(readFileSync(join(out, "summary.json"), "utf8")) as Summary;
}

// Every policy: test/rollout/rollout.test.ts.
it("a run of ten tasks that is started again runs what is no fault of its agent, then with --retry failed the rest, and no other [E1]", async () => {
  const command = await fakeCommand(AS_TOLD);
  writeFileSync(join(command.root, "rollcall.toml"), "max_attempts = 1\n[breaker]\nmode = 'off'\n");
  const settings = ["--config", join(command.root, "rollcall.toml")];
  await command.run(ROWS, ...QUICK, ...settings, "--limit", "9");
  const before = [...command.results()].map(([id, { status, cause_class }]) => `${id} ${status} ${cause_class}`);
  expect(before.sort()).toEqual([
    ...["t0", "t1", "t2", "t3"].map((id) => `${id} completed null`),
    ...["t4", "t5"].map((id) => `${id} failed agent`),
    ...["t6", "t7", "t8"].map((id) => `${id} failed infrastructure`),
  ]);
  const saying = (word: string): string[] =>
    [...command.results()].flatMap(([id, { response }]) => (JSON.stringify(response).includes(`"${word}"`) ? [id] : [])).sort();

  command.codex("turn again");
  expect(await command.run(ROWS, ...QUICK, ...settings)).toMatchObject({ code: 1 });
  expect(saying("again")).toEqual(["t6", "t7", "t8", "t9"]);
  expect(summaryOf(command)).toMatchObject({ total: 10, missing: 0, by_status: { completed: 8, failed: 2 } });

  command.codex("turn third");
  expect(await command.run(ROWS, ...QUICK, ...settings, "--retry", "failed")).toMatchObject({ code: 0 });
  expect(saying("third")).toEqual(["t4", "t5"]);
  expect(saying("again")).toEqual(["t6", "t7", "t8", "t9"]);
  expect(summaryOf(command)).toMatchObject({ total: 10, missing: 0, by_status: { completed: 10 } });
});

describe("what somebody deleted by hand", () => {
  it("is told and run again where it was a result, taken in where it was a line, and built again where it was all lines [E2]", async () => {
    const command = await fakeCommand('turn "first"');
    const rows = ROWS.slice(0, 3);
    await command.run(rows, ...QUICK);
    const idOf = (task: string): string => command.results().get(task)!.activation_id;
    const lines = readFileSync(join(command.out, "results.jsonl"), "utf8").split("\n");
    rmSync(join(command.out, "artifacts", idOf("t0"), "result.json"));
    writeFileSync(join(command.out, "results.jsonl"), lines.filter((line) => !line.includes(idOf("t1"))).join("\n"));
    command.codex('turn "second"');
    const again = await command.run(rows, ...QUICK);
    expect(again).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/1 taken in from the store.*1 with a line in results.jsonl but no result/) as string,
    });
    const said = [...command.results()].map(([id, { response }]) => [id, /first|second/.exec(JSON.stringify(response?.output))?.[0]]);
    expect(Object.fromEntries(said)).toEqual({ t0: "second", t1: "first", t2: "first" });

    const whole = [...command.results().keys()].sort();
    rmSync(join(command.out, "results.jsonl"));
    rmSync(join(command.out, "summary.json"));
    expect(await besides(command, "collect", "--out", command.out)).toMatchObject({ code: 0 });
    expect([...command.results().keys()].sort()).toEqual(whole);
    expect(summaryOf(command)).toMatchObject({ total: 3, missing: 0, by_status: { completed: 3 } });
  });

  it("is missing, and is run by the same command, where it was an activation's keys in Redis [E2]", async () => {
    const redis = await startTestRedis({ tcp: { password: "pw" } });
    onTestFinished(() => redis.stop());
    const client = connectRedis(redis.target, { role: "command", onError: () => undefined });
    onTestFinished(() => client.disconnect());
    const command = await fakeCommand('[ "$prompt" = waits ] && exec sleep 300\nturn "$prompt"');
    command.env["REDIS_URL"] = redis.target.kind === "url" ? redis.target.url : "";
    command.env["ROLLCALL_SECRET_KEY"] = Buffer.alloc(32, 7).toString("base64");
    command.env["ROLLCALL_ARTIFACTS_DIR"] = join(command.root, "artifacts");
    const rows = [{ id: "t0", input: "waits" }, ...["t1", "t2"].map((id) => ({ id, input: "x" }))];
    const run = command.start(rows, "--workers", "1", "--probe", "0");
    await vi.waitFor(async () => expect(await client.keys("*:ledger:*-t0")).not.toEqual([]), { timeout: 40_000 });
    const gone = (await client.keys("*")).filter((key) => key.includes("-t1"));
    expect(gone.length).toBeGreaterThan(0);
    await client.del(...gone);
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 75 });
    expect(summaryOf(command)).toMatchObject({ total: 3, interrupted: true });
    command.codex("turn again");
    expect(await command.run(rows, "--workers", "1", "--probe", "0")).toMatchObject({ code: 0 });
    expect(summaryOf(command)).toMatchObject({ total: 3, missing: 0, by_status: { completed: 3 } });
  });
});
