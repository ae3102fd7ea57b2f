// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startResourcesServer } from "../../examples/stand-ins/resources-server.ts";
import { besides } from "../support/fake-command.ts";
import { linesOf, ROWS, started } from "./command-rig.ts";

it("a worker that is killed between a verifier's answer and its record verifies again, runs nothing again, and there is one result [E19]", async () => {
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
