// SPDX-License-Identifier: Apache-2.0
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startResourcesServer, type ResourcesServerOptions, type ResourcesStandIn } from "../../examples/stand-ins/resources-server.ts";
import { besides, fakeCommand, type FakeCommand } from "../support/fake-command.ts";

// The producer is the worker too, and its Redis dies with it. Everything real but Codex and the resources server.

const ROWS = Array.from({ length: 10 }, (_, n) => ({
  id: `t${n}`,
  input: `work ${n}`,
  task_data: { task_id: `t${n}`, sector: "Finance" },
}));
const TOML = `[queue]
lock_duration_ms = 2000
lock_renew_ms = 500
stalled_interval_ms = 500
[retry]
base_seconds = 0.2
[breaker]
mode = "off"
`;

async function started(
  options: ResourcesServerOptions = {},
): Promise<{ command: FakeCommand; resources: ResourcesStandIn; flags: string[] }> {
  const command = await fakeCommand('sleep 0.4\nturn "did $prompt"');
  const resources = await startResourcesServer({ deliverables: join(command.root, "deliverables"), ...options });
  onTestFinished(() => resources.close());
  writeFileSync(join(command.root, "rollcall.toml"), TOML);
  return {
    command,
    resources,
    flags: ["--config", join(command.root, "rollcall.toml"), "--resources-server", resources.url, "--concurrency", "3", "--probe", "0"],
  };
}

const linesOf = ({ out }: FakeCommand): number =>
  existsSync(join(out, "results.jsonl")) ? readFileSync(join(out, "results.jsonl"), "utf8").split("\n").length - 1 : 0;

/** Everything of the final results that does not say when, where and how often. */
function finalOf(command: FakeCommand): object[] {
  return [...command.results().values()]
    .map(({ task_id, status, reward, verification, rollout, response, failure }) => ({
      task_id,
      status,
      reward,
      verification: { ...verification, deliverables_dir: null },
      verified: rollout?.verified,
      said: JSON.stringify(response?.output),
      failure,
    }))
    .sort((a, b) => a.task_id.task_id.localeCompare(b.task_id.task_id));
}

function deliverablesOf({ root }: FakeCommand): string[] {
  return readdirSync(join(root, "deliverables"), { recursive: true, encoding: "utf8" }).sort();
}

it("a producer that is killed at 30 and at 70 percent leaves the files of an undisturbed run, and no session open [E2]", async () => {
  const [quiet, killed] = [await started(), await started()];
  const undisturbed = quiet.command.run(ROWS, ...quiet.flags);
  for (const share of [3, 7]) {
    const run = killed.command.start(ROWS, ...killed.flags);
    await vi.waitFor(() => expect(linesOf(killed.command)).toBeGreaterThanOrEqual(share), { timeout: 90_000, interval: 20 });
    run.child.kill("SIGKILL");
    await run.ended;
    expect(linesOf(killed.command)).toBeLessThan(ROWS.length);
  }
  const last = await killed.command.run(ROWS, ...killed.flags);
  expect({ code: last.code, stderr: last.stderr }).toMatchObject({ code: 0 });
  expect(await undisturbed).toMatchObject({ code: 0 });

  expect(finalOf(killed.command)).toEqual(finalOf(quiet.command));
  expect(deliverablesOf(killed.command)).toEqual(deliverablesOf(quiet.command));
  const lines = readFileSync(join(killed.command.out, "results.jsonl"), "utf8").trim().split("\n");
  expect(lines).toHaveLength(ROWS.length);
  expect(JSON.parse(readFileSync(join(killed.command.out, "summary.json"), "utf8"))).toMatchObject({
    total: 10,
    missing: 0,
    unverified: 0,
  });
  expect(killed.resources.openSessions()).toEqual([]);
  expect(quiet.resources.calls).toHaveLength(3 * ROWS.length);
});

it("a worker that is killed between a verifier's answer and its record verifies again, runs nothing again, and there is one result [C3]", async () => {
  let kill = (): void => undefined;
  const { command, resources, flags } = await started({ onAnswered: ({ path }) => path === "/verify" && kill() });
  const rows = ROWS.slice(0, 1);
  const run = command.start(rows, ...flags);
  kill = () => {
    kill = () => undefined;
    run.child.kill("SIGKILL");
  };
  await run.ended;
  expect(linesOf(command)).toBe(0);
  const again = await command.run(rows, ...flags);
  expect({ code: again.code, stderr: again.stderr }).toMatchObject({ code: 0 });
  const verified = resources.calls.filter(({ path }) => path === "/verify");
  expect([1, 2]).toContain(verified.length);
  expect(new Set(verified.map(({ session_id }) => session_id)).size).toBe(1);
  expect(resources.calls.filter(({ path }) => path === "/seed_session")).toHaveLength(1);
  expect(linesOf(command)).toBe(1);
  const result = command.results().get("t0")!;
  expect(result).toMatchObject({ status: "completed", reward: 0, rollout: { verified: true, verifications: 1 } });
  expect(readdirSync(join(command.out, "artifacts", result.activation_id)).filter((name) => name.startsWith("attempt-"))).toEqual([
    "attempt-0",
  ]);
  expect(resources.openSessions()).toEqual([]);
});

it("Ctrl-C hands rollouts back; the same command goes on with a session of its own, not counted as a failure [E1]", async () => {
  const { command, resources, flags } = await started();
  command.codex('sleep 60\nturn "never"');
  const rows = ROWS.slice(0, 2);
  const run = command.start(rows, ...flags);
  await vi.waitFor(
    () =>
      expect(
        readdirSync(join(command.out, "artifacts"), { recursive: true })
          .map(String)
          .filter((name) => name.endsWith("events.jsonl")),
      ).toHaveLength(2),
    {
      timeout: 60_000,
    },
  );
  run.child.kill("SIGINT");
  expect(await run.ended).toMatchObject({ code: 75 });
  command.codex('turn "did it"');
  const again = await command.run(rows, ...flags);
  expect({ code: again.code, stderr: again.stderr }).toMatchObject({ code: 0 });
  for (const { id } of rows) {
    const result = command.results().get(id)!;
    expect(result).toMatchObject({ status: "completed", episode_id: { attempt: 1 }, rollout: { verified: true } });
    expect(result.attempts.map(({ charged }) => charged)).toEqual([false, expect.anything()]);
  }
  expect(resources.openSessions()).toEqual([]);
});

it("what could not be verified is reported, kept, and verified later by `rollcall verify`", async () => {
  let broken = true;
  const { command, resources, flags } = await started({
    faultFor: ({ path }) => (broken && path === "/verify" ? { kind: "status", status: 422 } : undefined),
  });
  const rows = ROWS.slice(0, 2);
  const run = await command.run(rows, ...flags);
  expect(run).toMatchObject({ code: 0, stderr: expect.stringMatching(/not verified: 2; `rollcall verify --out/) as string });
  for (const { id } of rows) {
    expect(command.results().get(id)).toMatchObject({
      status: "completed",
      rollout: { verified: false, verification_failure: { status_code: 422 } },
    });
    expect(command.results().get(id)).not.toHaveProperty("reward");
  }
  // This server scores by sessions, and theirs are closed: it refuses, and nothing is changed.
  broken = false;
  const before = readFileSync(join(command.out, "results.jsonl"), "utf8");
  const refused = await besides(command, "verify", "--out", command.out, "--resources-server", resources.url);
  expect(refused).toMatchObject({ code: 3, stdout: "verified 0, not verified 2\n", stderr: expect.stringMatching(/HTTP 409/) as string });
  expect(readFileSync(join(command.out, "results.jsonl"), "utf8")).toBe(before);

  const stateless = await startResourcesServer({ stateless: true });
  onTestFinished(() => stateless.close());
  const one = await besides(command, "verify", "t1", "--out", command.out, "--resources-server", stateless.url);
  expect(one).toMatchObject({ code: 0, stdout: "verified 1, not verified 0\n" });
  const rest = await besides(command, "verify", "--out", command.out, "--resources-server", stateless.url);
  expect(rest).toMatchObject({ code: 0, stdout: "verified 1, not verified 0\n" });
  for (const { id } of rows) expect(command.results().get(id)).toMatchObject({ reward: 0, rollout: { verified: true, verifications: 1 } });
  // The same request as the first time.
  const bodies = [...resources.calls, ...stateless.calls]
    .filter(({ path, body }) => path === "/verify" && body["task_id"] === "t1")
    .map(({ body }) => body);
  expect(bodies).toHaveLength(3);
  for (const body of bodies) expect(body).toEqual(bodies[0]);
  // What the store has makes the same lines.
  expect(await besides(command, "collect", "--out", command.out)).toMatchObject({ code: 0 });
  for (const { id } of rows) expect(command.results().get(id)).toMatchObject({ reward: 0, rollout: { verified: true } });
});
