// SPDX-License-Identifier: Apache-2.0
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { CodexBinary } from "../../src/codex/binary.ts";
import { attemptSchema, resultSchema } from "../../src/contract/result.ts";
import { attemptRunner } from "../support/attempt.ts";
import { resultOf } from "../support/result-documents.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { profileFor } from "../../src/codex/profile.ts";

const dir = suiteDir();
const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));
const codex: CodexBinary = {
  version: "0.144.4",
  profile: profileFor("0.144.4"),
  key: "fake-reads-all",
  hostDir: FAKES,
  entry: "reads-all",
  only: ["reads-all"],
  tools: null,
  bwrap: null,
};
const raw = (id: string) => ({ activation_id: id, task_id: { taskset: "t", task_id: id }, input: "hello", sandbox: { provider: "host" } });
const lost = {
  attempt: 0,
  worker: { id: "w-dead", host: "h", version: "0.1.0", codex_version: "0.144.4", sandbox_provider: "bubblewrap" },
  started_at: "2027-01-15T08:00:00.000Z",
  lost: true,
};

it("runs no Codex when another worker committed an end between the claim's look for one and its attempt", async () => {
  const runner = await attemptRunner(join(dir, "race"), codex);
  const theirs = resultOf("act-race", { response: null, metadata: { by: "the other worker" } });
  const end = await runner.run(raw("act-race"), { attempt: 1, meanwhile: () => runner.ports.store.commit(theirs) });
  expect(end).toEqual({ kind: "ended", result: theirs });
  expect(await readdir(join(runner.store, "act-race"))).toEqual(["result.json"]); // nothing of an attempt 1
});

it("runs when what stands is the end of an earlier generation's", async () => {
  const runner = await attemptRunner(join(dir, "earlier"), codex);
  const end = await runner.run(raw("act-earlier"), {
    meanwhile: () => runner.ports.store.commit(resultOf("act-earlier", { generation: -1 })),
  });
  expect(end).toMatchObject({ kind: "ended", result: { generation: 0, status: "completed", response: { status: "completed" } } });
});

it("lists an attempt whose worker was lost before it could save anything, charged and with its number", async () => {
  const runner = await attemptRunner(join(dir, "lost"), codex);
  const end = await runner.run(raw("act-lost"), { attempt: 1, charged: 1, unsaved: [lost] });
  if (end.kind !== "ended") throw new Error(`it ended as ${end.kind}`);
  resultSchema.parse(end.result);
  const [first, second] = end.result.attempts;
  attemptSchema.parse(first);
  expect(first).toMatchObject({
    attempt: 0,
    charged: true,
    status: "failed",
    worker: lost.worker,
    failure: { cause_code: "session_lost" },
  });
  expect(second).toMatchObject({ attempt: 1, status: "completed" });
});

it("takes an attempt's own record for it, where that was saved", async () => {
  const runner = await attemptRunner(join(dir, "saved"), codex);
  await runner.run(raw("act-saved"), { signal: AbortSignal.abort({ kind: "shutdown" }) });
  const [own] = await runner.ports.store.readAttempts("act-saved");
  const end = await runner.run(raw("act-saved"), { attempt: 1, unsaved: [lost] });
  expect(end.kind === "ended" && end.result.attempts.map(({ attempt, charged }) => [attempt, charged])).toEqual([
    [0, false],
    [1, true],
  ]);
  expect(end.kind === "ended" && end.result.attempts[0]).toEqual(own);
});

describe("an attempt that another one has overtaken, because its worker stood still,", () => {
  const isOvertaken = () => Promise.resolve(true);

  it("is no end when it did not end well", async () => {
    const runner = await attemptRunner(join(dir, "overtaken"), { ...codex, entry: "dies-in-thread", only: ["dies-in-thread"] });
    const options = { ...raw("act-overtaken"), max_attempts: 1 };
    const { end, attempt, result } = await runner.outcome(options, { isOvertaken });
    expect([end, result]).toEqual([{ kind: "handed_back", reason: "lock_lost" }, null]);
    expect(attempt).toMatchObject({ charged: false, failure: { cause_code: "lock_lost" } });
  });

  it("is one when Redis cannot say so, or nobody has begun", async () => {
    const runner = await attemptRunner(join(dir, "alone"), { ...codex, entry: "dies-in-thread", only: ["dies-in-thread"] });
    const ends = [
      await runner.run({ ...raw("act-alone"), max_attempts: 1 }),
      await runner.run({ ...raw("act-away"), max_attempts: 1 }, { isOvertaken: () => Promise.reject(new Error("away")) }),
    ];
    for (const end of ends) expect(end).toMatchObject({ kind: "ended", result: { status: "failed" } });
  });

  it("is one when it is finished work", async () => {
    const runner = await attemptRunner(join(dir, "finished"), codex);
    expect(await runner.run(raw("act-finished"), { isOvertaken })).toMatchObject({ kind: "ended", result: { status: "completed" } });
  });
});

it("answers the end that somebody else committed, when it is stopped because of that", async () => {
  const runner = await attemptRunner(join(dir, "stopped"), { ...codex, entry: "silent-turn", only: ["silent-turn"] });
  const theirs = resultOf("act-stopped", { metadata: { by: "the first worker" } });
  const stop = new AbortController();
  const end = await runner.run(raw("act-stopped"), {
    attempt: 1,
    signal: stop.signal,
    async onProgress({ stage }) {
      if (stage !== "running" || stop.signal.aborted) return;
      await runner.ports.store.commit(theirs);
      stop.abort({ kind: "lock_lost" });
    },
  });
  expect(end).toEqual({ kind: "ended", result: theirs });
  expect(await runner.ports.store.readAttempts("act-stopped")).toMatchObject([
    { attempt: 1, charged: false, failure: { cause_code: "lock_lost" } },
  ]);
});
