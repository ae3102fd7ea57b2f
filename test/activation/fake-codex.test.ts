// SPDX-License-Identifier: Apache-2.0
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { binaryStamp, checkCodexVersion, type CodexBinary } from "../../src/codex/binary.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { processIdentity } from "../../src/host/process.ts";
import { attemptRunner, type RunOptions } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { profileFor } from "../../src/codex/profile.ts";

const dir = suiteDir();
let runs = 0;
const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));

/** A small real executable in Codex's place, for what the real one cannot be made to do. */
function fake(entry: string): CodexBinary {
  return {
    version: "0.144.4",
    profile: profileFor("0.144.4"),
    key: `fake-${entry}`,
    hostDir: FAKES,
    entry,
    only: [entry],
    tools: null,
    bwrap: null,
  };
}

async function run(entry: string, more: Record<string, unknown> = {}, options: RunOptions = {}): Promise<ActivationResult> {
  const runner = await attemptRunner(`${dir}/run-${++runs}`, fake(entry));
  const { result } = await runner.outcome({ task_id: { taskset: "t", task_id: entry }, input: "hello", max_attempts: 1, ...more }, options);
  if (result === null) throw new Error("it would be retried");
  return result;
}

function gap(result: ActivationResult, code: string): unknown {
  const found = result.observations.gaps.find((candidate) => candidate.code === code);
  return found === undefined ? undefined : JSON.parse(found.detail ?? "null");
}

describe("what a launched process may do to its worker", () => {
  it("gets the whole prompt on stdin and its end, with small arguments and environment whatever the input [A1 A2]", async () => {
    const result = await run("reads-all", { input: "p".repeat(1_048_576) });
    const [message] = result.response?.output ?? [];
    const [prompt, args, env] = message?.type === "message" ? (message.content[0]?.text.split(" ").map(Number) ?? []) : [];
    expect(prompt).toBe(1_048_576);
    expect(args).toBeLessThan(4_096);
    expect(env).toBeLessThan(8_192);
  });

  it("shows no secret in the progress that others watch, though a tool be named like one [C8]", async () => {
    const connection = { transport: "streamable_http", url: "http://127.0.0.1:1/mcp", headers: { "X-Token": "FAKE-token-12345678" } };
    const grants = [{ type: "mcp", name: "office", required: true, connection }];
    const notes: (string | undefined)[] = [];
    const result = await run("calls-by-secret", { tool_grants: grants }, { onProgress: ({ note }) => notes.push(note) });
    expect(notes).toContain("[redacted] (office)");
    expect(JSON.stringify([notes, result])).not.toContain("FAKE-token");
  });

  it("may close its stdin unread: the broken pipe harms nobody [A1]", async () => {
    expect((await run("reads-nothing", { input: "p".repeat(200_000) })).status).toBe("completed");
  });

  it("that ends with empty stdout has failed at startup, with the end of its stderr [R10 R52]", async () => {
    const result = await run("dies-with-words");
    expect(result.failure).toMatchObject({
      cause_code: "unknown",
      status_code: 502,
      failure_reason: "first line of stderr\nthe disk is on fire\n",
    });
    expect(result.observations.gaps.filter(({ code }) => code === "agent_startup_failed").map(({ detail }) => detail)).toEqual([
      result.failure?.failure_reason,
    ]);
    expect(result.cause_class).toBe("infrastructure");
  });

  it("has failed whether its turn or its exit says so, each with its own reason [A6]", async () => {
    const [turn, exit] = [await run("turn-failed-exit-0"), await run("turn-completed-exit-1")];
    expect(turn.failure).toMatchObject({ cause_code: "turn_failed", failure_reason: "it broke" });
    expect(exit.failure).toMatchObject({ cause_code: "exit_code", failure_reason: "Codex exited with code 1" });
  });

  it("may write foreign text, huge lines and very many lines in bounded memory, and is followed to its last line [A11 A12]", async () => {
    const before = process.memoryUsage().rss;
    const result = await run("noisy");
    expect(result.status).toBe("completed");
    expect(gap(result, "stdout_lines_unparsed")).toEqual({ count: 3 });
    expect(gap(result, "stdout_truncated")).toMatchObject({ lines_cut: 1 });
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
  });

  it.each(["bubblewrap", "host"])("cannot hold the result back by a process that keeps its pipes open (%s)", async (provider) => {
    const result = await run("holds-pipes", { sandbox: { provider }, codex: { session_close_timeout_seconds: 280 } });
    expect(result.status).toBe("completed");
    expect(result.evidence?.cleanup_error).toBeNull();
  });

  it("cannot hold the result back by one that is not found either: silence is the end", async () => {
    const result = await run("holds-pipes-unseen", { sandbox: { provider: "host" }, codex: { session_close_timeout_seconds: 280 } });
    expect(result.status).toBe("completed");
    const [message] = result.response?.output ?? [];
    const holder = processIdentity(message?.type === "message" ? Number(message.content[0]?.text) : 0);
    expect(holder).not.toBeNull(); // nobody waited for it
    process.kill(holder!.pid, "SIGKILL");
  });

  it("is ended when its turn is over and it does not exit, and what it did counts", async () => {
    const result = await run("lingers");
    expect(result).toMatchObject({ status: "completed", failure: null, cause_class: null });
    expect(result.evidence).toMatchObject({ stopped: { kind: "linger" }, exit_code: 9, turn_completed: true });
  });

  it.each([
    ["removed", (path: string) => rmSync(path)],
    ["exchanged", (path: string) => writeFileSync(path, "#!/bin/sh\nexit 0\n", { mode: 0o755 })],
  ])("that was %s since its worker started is a failure of that host: tried again, elsewhere [E21]", async (what, change) => {
    const hostDir = join(dir, what);
    mkdirSync(hostDir);
    cpSync(join(FAKES, "reads-nothing"), join(hostDir, "reads-nothing"));
    const codex = { ...fake("reads-nothing"), hostDir };
    const runner = await attemptRunner(join(dir, `${what}-runner`), { ...codex, stamp: await binaryStamp(codex) });
    const one = (id: string) => runner.outcome({ task_id: { taskset: "t", task_id: id }, input: "x" });
    expect((await one("before")).result?.status).toBe("completed");
    change(join(hostDir, "reads-nothing"));
    const { end, attempt } = await one("after");
    expect(end.kind).toBe("retry");
    expect(attempt).toMatchObject({
      cause_class: "infrastructure",
      failure: { failure_kind: "transport_local_resource", cause_code: "sandbox_failed", status_code: 503, terminal: false },
    });
    expect(attempt.failure?.failure_reason).toContain("reads-nothing was removed or exchanged since this worker started");
  });

  it("is refused before anything runs when its version is another one [R48]", async () => {
    await expect(checkCodexVersion(fake("dies-with-words"))).rejects.toMatchObject({ code: "binary_missing" });
    const runner = await attemptRunner(`${dir}/version`, fake("reads-all"));
    const { result } = await runner.outcome({ task_id: { taskset: "t", task_id: "v" }, input: "x", codex: { version: "9.9.9" } });
    expect(result).toMatchObject({ status: "failed", failure: { cause_code: "codex_version_mismatch", terminal: true }, evidence: null });
  });
});
