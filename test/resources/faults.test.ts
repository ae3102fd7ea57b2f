// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startResourcesServer, type ResourcesFault, type ResourcesStandIn } from "../../examples/stand-ins/resources-server.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { readRolloutResult } from "../../src/resources/documents.ts";
import { enqueueRollouts } from "../../src/resources/enqueue-rollouts.ts";
import { startRolloutSteps } from "../../src/resources/steps.ts";
import { everythingIn } from "../support/redis-contents.ts";
import { filesHolding } from "../support/byte-search.ts";
import { activationOf, completes, startRig, TEST_KEYS, type Rig } from "../queue/rig.ts";
import { LIMITS, STEP_WORKER } from "./rig.ts";

// One server, and rollouts that each meet one fault of it. All at once: what they wait for is time.

type Path = "/seed_session" | "/verify" | "/close_session";
const once = (path: Path, fault: ResourcesFault) => [{ path, nth: 0, fault }];
const always = (path: Path, fault: ResourcesFault) => [0, 1, 2, 3, 4, 5].map((nth) => ({ path, nth, fault }));
const status = (code: number, retry_after?: string): ResourcesFault => ({
  kind: "status",
  status: code,
  ...(retry_after === undefined ? {} : { retry_after }),
});

const [SEED, VERIFY, CLOSE] = ["/seed_session 200", "/verify 200", "/close_session 200"];
const WELL = { status: "completed", rollout: { verified: true } };
const failedSeed = (cause: string, terminal = true) => ({ status: "failed", failure: { stage: "seed", cause_code: cause, terminal } });
const unverified = (kind: string) => ({
  status: "completed",
  rollout: { verified: false, verification_failure: { failure_kind: kind, stage: "verification" } },
});

const CASES: Record<string, { faults: ReturnType<typeof always>; asked: string[]; result: object; attempts: number[] }> = {
  "a seed that is answered with 500 once": {
    faults: once("/seed_session", status(500)),
    asked: ["/seed_session 500", CLOSE, SEED, VERIFY, CLOSE],
    result: WELL,
    attempts: [0],
  },
  "a seed that is answered with 429 and a Retry-After": {
    faults: once("/seed_session", status(429, "1")),
    asked: ["/seed_session 429", CLOSE, SEED, VERIFY, CLOSE],
    result: WELL,
    attempts: [0],
  },
  "a seed that is not answered": {
    faults: once("/seed_session", { kind: "hang" }),
    asked: ["/seed_session null", CLOSE, SEED, VERIFY, CLOSE],
    result: WELL,
    attempts: [0],
  },
  "a seed whose answer is cut off": {
    faults: once("/seed_session", { kind: "cut" }),
    asked: ["/seed_session null", CLOSE, SEED, VERIFY, CLOSE],
    result: WELL,
    attempts: [0],
  },
  "a seed whose answer is lost": {
    faults: once("/seed_session", { kind: "lost" }),
    asked: ["/seed_session null", CLOSE, SEED, VERIFY, CLOSE],
    result: WELL,
    attempts: [0],
  },
  "a server that fails every seed": {
    faults: always("/seed_session", status(503)),
    asked: ["/seed_session 503", CLOSE, "/seed_session 503", CLOSE, "/seed_session 503", CLOSE],
    result: { ...failedSeed("resources_seed_failed", false), cause_class: "infrastructure" },
    attempts: [0, 1, 2],
  },
  "a seed that is refused": {
    faults: always("/seed_session", status(422)),
    asked: ["/seed_session 422", CLOSE],
    result: failedSeed("resources_seed_failed"),
    attempts: [0],
  },
  "a seed without MCP metadata": {
    faults: always("/seed_session", { kind: "no_metadata" }),
    asked: [SEED, CLOSE],
    result: failedSeed("resources_metadata_missing"),
    attempts: [0],
  },
  "a seed that gives a sandbox to attach to": {
    faults: always("/seed_session", { kind: "sandbox_access" }),
    asked: [SEED, CLOSE],
    result: {
      ...failedSeed("resources_sandbox_access"),
      failure: expect.objectContaining({ failure_reason: expect.stringMatching(/attaching to one is not there yet/) as string }) as object,
    },
    attempts: [0],
  },
  "a verification that fails once": {
    faults: once("/verify", status(500)),
    asked: [SEED, "/verify 500", VERIFY, CLOSE],
    result: WELL,
    attempts: [],
  },
  "a verification whose answer is lost": {
    faults: once("/verify", { kind: "lost" }),
    asked: [SEED, "/verify null", VERIFY, CLOSE],
    result: WELL,
    attempts: [],
  },
  "a verification that always fails": {
    faults: always("/verify", status(500)),
    asked: [SEED, "/verify 500", "/verify 500", "/verify 500", CLOSE],
    result: unverified("verifier_error"),
    attempts: [],
  },
  "a verification that is refused": {
    faults: always("/verify", status(422)),
    asked: [SEED, "/verify 422", CLOSE],
    result: unverified("verifier_error"),
    attempts: [],
  },
  "a verification without a reward": {
    faults: always("/verify", { kind: "no_reward" }),
    asked: [SEED, VERIFY, CLOSE],
    result: unverified("protocol_violation"),
    attempts: [],
  },
  "a session that is not closed at first": {
    faults: once("/close_session", status(500)),
    asked: [SEED, VERIFY, "/close_session 500", CLOSE],
    result: WELL,
    attempts: [],
  },
  "a session that cannot be closed": {
    faults: always("/close_session", status(500)),
    asked: [SEED, VERIFY, "/close_session 500", "/close_session 500", "/close_session 500"],
    result: { ...WELL, rollout: { verified: true, cleanup_error: expect.stringMatching(/HTTP 500/) as string } },
    attempts: [],
  },
};
const NAMES = Object.keys(CASES);
const idOf = (name: string): string => `c${NAMES.indexOf(name)}`;

describe("what a rollout makes of it", () => {
  let rig: Rig;
  let resources: ResourcesStandIn;
  let steps: ReturnType<typeof startRolloutSteps>;
  const logs: string[] = [];
  const deliverables = mkdtempSync(join(tmpdir(), "rollcall-resources-"));
  const results = new Map<string, ActivationResult>();

  beforeAll(async () => {
    rig = await startRig();
    resources = await startResourcesServer({
      deliverables,
      faultFor: ({ path, rollout_id, nth }) =>
        CASES[NAMES[Number(rollout_id.slice("r-c".length))]!]?.faults.find((one) => one.path === path && one.nth === nth)?.fault,
    });
    await rig.sentinel();
    await rig.worker(completes(rig.store), { concurrency: 8 });
    const log = pino({ level: "debug" }, { write: (line: string) => void logs.push(line) });
    const limits = { ...LIMITS, max_sessions: 32, seed_timeout_ms: 1_500 };
    steps = startRolloutSteps({ queues: rig.open(), store: rig.store, keys: TEST_KEYS, limits, worker: STEP_WORKER, log });
    const server = { url: resources.url, name: "resources", protocol: "session" as const, mcp: true };
    const requests = NAMES.map((name) => ({ activation: activationOf(idOf(name)), row: { task_id: idOf(name) } }));
    await enqueueRollouts({ queues: rig.queues, store: rig.store, keys: TEST_KEYS, server }, requests, { again: false });
    await vi.waitFor(
      async () => {
        for (const name of NAMES) {
          const result = results.get(name) ?? (await readRolloutResult(rig.store, idOf(name)));
          expect(result, `${name} is not over: ${callsOf(name).join(", ")}`).not.toBeNull();
          results.set(name, result!);
        }
      },
      { timeout: 90_000, interval: 100 },
    );
  }, 120_000);
  afterAll(async () => {
    await steps.close({ graceMs: 3_000 });
    await resources.close();
    await rig.close();
    rmSync(deliverables, { recursive: true, force: true });
  });

  const callsOf = (name: string): string[] => {
    const ids = new Set(
      resources.calls
        .filter(({ rollout_id }) => rollout_id === `r-${idOf(name)}`)
        .map(({ session_id, body }) => session_id ?? body["resources_session_id"]),
    );
    return resources.calls.flatMap((call) =>
      call.rollout_id === `r-${idOf(name)}` || ids.has(call.session_id) ? [`${call.path} ${call.status}`] : [],
    );
  };

  it.each(NAMES)("%s", (name) => {
    const { asked, result, attempts } = CASES[name]!;
    expect(callsOf(name)).toEqual(asked);
    expect(results.get(name)).toMatchObject(result);
    const failed = results.get(name)!.attempts.filter(({ failure }) => failure !== null);
    expect(failed.map(({ attempt }) => attempt)).toEqual(attempts);
    for (const { failure } of failed) expect(failure).toMatchObject({ stage: "seed" });
    if (results.get(name)!.rollout?.verified === false) expect(results.get(name)).not.toHaveProperty("reward");
  });

  it("leaves no session open but the one that its server does not let go", () => {
    const kept = resources.calls.find(({ rollout_id }) => rollout_id === `r-${idOf("a session that cannot be closed")}`);
    expect(resources.openSessions()).toEqual([kept!.session_id]);
  });

  it("leaves no token and no cookie in Redis, the store, deliverables or logs, also where an answer quoted one", async () => {
    expect(resources.secrets.length).toBeGreaterThan(NAMES.length);
    expect(resources.calls.filter(({ status: code }) => code === 500).length).toBeGreaterThan(3);
    const inRedis = await everythingIn(rig.queues.redis);
    expect(logs.join("")).toMatch(/told to fail/);
    for (const secret of resources.secrets) {
      for (const text of [secret, secret.split(".")[1]!]) {
        expect(inRedis).not.toContain(text);
        expect(logs.join("")).not.toContain(text);
        expect(filesHolding(rig.storeRoot, text)).toEqual([]);
        expect(filesHolding(deliverables, text)).toEqual([]);
      }
    }
  });
});
