// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step, type Step } from "../../examples/stand-ins/script.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { isAlive, processIdentity } from "../../src/host/process.ts";
import { findBubblewrap } from "../../src/sandbox/bubblewrap-binary.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap.ts";
import { attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { commandLinesHolding, filesHolding } from "../support/byte-search.ts";
import { suiteDir } from "../support/suite-dir.ts";

const codex = (await codexVersions())[0]!.codex;
const dir = suiteDir();
/** Of this suite only, so that sandboxes of others on this machine are not taken for what it left. */
const UIDS = { first: 1_910_000_000, count: 64 };
let model: ModelServer;
let office: OfficeTools;
let runner: AttemptRunner;
/** A process of the worker's user that the model's commands would love to hit: called node, and holding the word codex. */
let decoy: ChildProcess;

beforeAll(async () => {
  [model, office] = [await startModelServer({ apiKey: TEST_KEY }), await startOfficeTools()];
  const bwrapPath = await findBubblewrap({ path: process.env["PATH"] ?? "", ...(codex.bwrap === null ? {} : { vendored: codex.bwrap }) });
  const bubblewrap = createBubblewrapProvider({ stateDir: `${dir}/state`, bwrapPath, uidRange: UIDS });
  runner = await attemptRunner(dir, codex, { providers: { bubblewrap } });
  decoy = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)", "codex decoy"], {
    stdio: "ignore",
    env: { DECOY_SECRET: "decoy-secret-31337" },
  });
});
afterAll(async () => {
  decoy.kill("SIGKILL");
  await Promise.all([model.close(), office.close()]);
});

function activation(id: string, steps: Step[], more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    task_id: { taskset: "t", task_id: id },
    input: `Do the work.\n${scriptLine({ steps })}`,
    model: { name: "stand-in", base_url: model.captureBaseUrl },
    max_attempts: 1,
    ...more,
  };
}

function outputs(result: ActivationResult | null): string {
  return (
    result?.response?.output ??
    result?.observations.records.flatMap((record) => (record.kind === "agent_invocation" ? record.conversation : [])) ??
    []
  )
    .flatMap((item) => (item.type === "function_call_output" ? [item.output] : []))
    .join("\n");
}

describe("a model that means harm", () => {
  it("kills nothing outside with pkill -f node, pkill -f codex and kill -9 -1, and ends as its own doing [R47 E10]", async () => {
    const own = processIdentity(decoy.pid);
    const { result: survivor } = await runner.outcome(
      activation("pkill", [
        step(shell("pkill -f node")),
        step(shell("pkill -f python3")),
        step(shell("sleep 0.4; echo still here")),
        step(say("done")),
      ]),
    );
    expect(survivor?.status).toBe("completed");
    expect(outputs(survivor)).toContain("still here");
    const { result: codexKilled } = await runner.outcome(
      activation("pkill-codex", [step(shell("sleep 0.5; pkill -9 -f codex; sleep 1; echo unreachable")), step(say("done"))]),
    );
    const { result: allKilled } = await runner.outcome(
      activation("kill-all", [step(shell("sleep 0.5; kill -9 -1; sleep 1")), step(say("done"))]),
    );
    for (const result of [codexKilled, allKilled]) {
      expect(result).toMatchObject({ status: "failed", cause_class: "agent", failure: { failure_kind: "kill_shaped", terminal: true } });
    }
    expect(own !== null && isAlive(own)).toBe(true);
  });

  it("is told with the command by which it ended its own Codex, its secrets redacted [E10 E11]", async () => {
    const port = new URL(model.url).port; // this process is the worker
    const SECRET = "hostile-secret-4711";
    const commands = {
      pkill: "sleep 0.5; pkill -f codex; sleep 1",
      parent: "sleep 0.5; kill -9 $PPID; sleep 1",
      listed: `sleep 0.5; fuser -k ${port}/tcp; ps -eo pid= | awk '{print $1}' | xargs kill -9; sleep 1`,
      secret: `sleep 0.5; echo ${SECRET}; pkill -9 -f codex; sleep 1`,
    };
    const office0 = {
      transport: "streamable_http",
      url: office.url,
      headers: { "X-NeMo-Gym-Session-Token": office.mintToken("kills", null), "X-Spread": SECRET },
    };
    const grants = [{ type: "mcp", name: "office", required: true, connection: office0 }];
    const ended = await Promise.all(
      Object.entries(commands).map(async ([id, command]) => {
        const steps = [step(shell(command)), step(say("done"))];
        const { result } = await runner.outcome(activation(`ends-codex-${id}`, steps, { tool_grants: grants }));
        return { id, result };
      }),
    );
    for (const { id, result } of ended) {
      expect(result).toMatchObject({ status: "failed", response: null, cause_class: "agent" });
      expect(result?.failure).toMatchObject({ failure_kind: "kill_shaped", cause_code: "killed_by_signal", terminal: true });
      const told = id === "secret" ? "sleep 0.5; echo [redacted]; pkill -9 -f codex" : commands[id as "pkill"].slice(0, 25);
      expect(result?.failure?.failure_reason).toMatch(/Codex was killed by SIG(KILL|TERM) while this ran: /);
      expect(result?.failure?.failure_reason).toContain(told);
    }
    expect(await fetch(`${model.url}/`).then(({ status }) => status)).toBeGreaterThan(0); // the worker's port answers
  });

  it("sees neither the worker's environment, nor other activations, nor the host's home, and cannot write /proc/sys", async () => {
    const look = [
      "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'",
      `ls -la ${runner.stateDir} /root /home /var/lib/rollcall 2>&1`,
      "test -w /proc/sys/kernel/core_pattern && printf 'PROC-SYS-%s\\n' WRITABLE",
      "touch /usr/x /etc/x 2>&1",
      "ps -ef 2>/dev/null || ls -d /proc/[0-9]*",
      "id -u; echo LOOKED",
    ].join("; ");
    const { result } = await runner.outcome(activation("look", [step(shell(look)), step(say("done"))]));
    const seen = outputs(result);
    expect(seen).toContain("LOOKED");
    expect(seen).not.toContain("decoy-secret-31337");
    expect(seen).not.toContain("codex decoy");
    expect(seen).not.toContain("PROC-SYS-WRITABLE");
    expect(seen).not.toContain("VITEST");
    expect(seen).toMatch(/Read-only file system|Permission denied/);
    expect(seen).toContain("1000");
  });

  it("leaves no process, mount, socket or directory behind [A14]", async () => {
    const before = remains();
    const ids = ["left-0", "left-1", "left-2", "left-3"];
    const results = await Promise.all(
      ids.map((id) =>
        runner.outcome(
          activation(
            id,
            [
              step(shell(`echo ${id} > own.txt; (setsid sleep 600 &) ; ls /workspace`)),
              step(mcp("office", "finish", { reason: id, paths: ["own.txt"] })),
              step(say("done")),
            ],
            {
              required_tools: ["finish"],
              tool_grants: [
                {
                  type: "mcp",
                  name: "office",
                  required: true,
                  connection: {
                    transport: "streamable_http",
                    url: office.url,
                    headers: { "X-NeMo-Gym-Session-Token": office.mintToken(id, null) },
                  },
                },
              ],
            },
          ),
        ),
      ),
    );
    for (const [index, { result, read }] of results.entries()) {
      expect(result?.status).toBe("completed");
      expect(await read("outputs/own.txt")).toBe(`${ids[index]}\n`);
      expect(office.calls.filter((call) => call.session_id === ids[index]).map((call) => call.args["reason"])).toEqual([ids[index]]);
    }
    expect(remains()).toEqual(before);
    expect(readdirSync(`${runner.stateDir}/sandboxes`)).toEqual([]);
  });
});

describe("a token", () => {
  const TOKEN = `tok "q" \\b %41 ${"z".repeat(24)}`;
  /** The model repeats the token wherever it can: commands, their output, a message, tool arguments, a file, its name. */
  const spread = [
    step(shell(`cat /home/agent/.codex/config.toml; printf '%s' '${TOKEN}' > leak.txt; printf '%s\\n' '${TOKEN}'; sleep 0.5`)),
    step(mcp("office", "finish", { reason: TOKEN, paths: ["leak.txt"] })),
    step(say(`The token is ${TOKEN}.`)),
  ];
  const grant = (headers: Record<string, string>): Record<string, unknown> => ({
    type: "mcp",
    name: "office",
    required: true,
    connection: { transport: "streamable_http", url: office.url, headers },
  });
  const session = (id: string, headers: Record<string, string>): Record<string, unknown> => ({
    ...activation(id, spread, { required_tools: ["finish"], tool_grants: [grant(headers)] }),
  });

  it("shows nowhere under the artifacts, in the log, in arguments; its file is quarantined [C2 C4]", async () => {
    const running = runner.outcome(
      session("secret", { "X-NeMo-Gym-Session-Token": office.mintToken("s-secret", null), "X-Spread": TOKEN }),
    );
    await vi.waitFor(() => expect(model.log.countOf("secret")).toBeGreaterThan(0), { timeout: 30_000 });
    expect(commandLinesHolding("zzzzzzzzzzzzzzzzzzzzzzzz")).toEqual([]);
    expect(commandLinesHolding(TEST_KEY)).toEqual([]);
    const { result } = await running;
    expect(result?.status).toBe("completed");
    expect(result?.observations.gaps.map(({ code }) => code)).toContain("artifact_quarantined");
    expect(filesHolding(runner.store, TOKEN).filter((file) => file.includes("secret/"))).toEqual([
      expect.stringContaining("/quarantine/leak.txt"),
    ]);
    expect(filesHolding(runner.store, TEST_KEY)).toEqual([]);
    expect(runner.logLines.join("")).not.toContain("zzzzzzzz");
    expect(JSON.stringify(result)).toContain("[redacted]");
  });

  it("is found in each of these places by the same search when it is no secret (control)", async () => {
    const { result } = await runner.outcome(session("control", { "X-NeMo-Gym-Session-Token": office.mintToken("s-control", null) }));
    expect(result?.status).toBe("completed");
    const found = filesHolding(runner.store, TOKEN).filter((file) => file.includes("act-run1-control"));
    expect(found.map((file) => file.replace(/^.*control\//, ""))).toEqual(
      expect.arrayContaining([
        "attempt-0/attempt.json",
        "attempt-0/events.jsonl",
        "attempt-0/outputs/leak.txt",
        "attempt-0/transcript.jsonl",
        "result.json",
      ]),
    );
  });
});

/** Processes of this suite's sandbox users, its mounts, sockets, uid locks and directories, as they are now. */
function remains(): Record<string, unknown> {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, "utf8");
        const uid = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
        return ours(uid) && !/^State:\s+[ZX]/m.test(status) ? [status] : [];
      } catch {
        return []; // ended meanwhile
      }
    });
  return {
    processes,
    mounts: readFileSync("/proc/self/mountinfo", "utf8"),
    sockets: readFileSync("/proc/net/unix", "utf8")
      .split("\n")
      .filter((line) => line.includes(dir)),
    uidLocks: readdirSync("/var/lib/rollcall/uids").filter((name) => ours(Number.parseInt(name, 10))),
    directories: readdirSync("/var/lib/rollcall/sandboxes").filter((name) => ours(lstatSync(`/var/lib/rollcall/sandboxes/${name}`).uid)),
    temporary: readdirSync(tmpdir()).filter((name) => ours(lstatSync(join(tmpdir(), name), { throwIfNoEntry: false })?.uid ?? 0)),
  };
}

function ours(uid: number): boolean {
  return uid >= UIDS.first && uid < UIDS.first + UIDS.count;
}
