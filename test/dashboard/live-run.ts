// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { startBrokenServer, startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step, type Script, type Step } from "../../examples/stand-ins/script.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import { callApi } from "../api/rig.ts";
import { startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

export const RUN = "run-live";
/** What a task may be called: it runs as a script where it is taken for HTML, and turns the text around it. */
export const HOSTILE = `<img src=x onerror=alert(1)>\u202Egnp.exe${"w".repeat(120)}`;

export interface LiveRun {
  origin: string;
  key: string;
  /** None of them may be seen by anybody. */
  secrets: readonly string[];
}

/**
 * A served run of real Codex sessions: two that complete, one whose required tool server does not connect, and one that goes on until it
 * is cancelled. All of it ends with the test.
 */
export async function startLiveRun(): Promise<LiveRun> {
  const root = tempDir();
  mkdirSync(join(root, "run"), { mode: 0o700 });
  const modelKey = "model-key-of-the-pages-5d1f";
  const [model, office, broken] = await Promise.all([
    startModelServer({ apiKey: modelKey }),
    startOfficeTools(),
    startBrokenServer("refuses"),
  ]);
  for (const server of [model, office, broken]) onTestFinished(() => server.close());
  const env = {
    OPENAI_API_KEY: modelKey,
    ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
    XDG_STATE_HOME: join(root, "state"),
    XDG_RUNTIME_DIR: join(root, "run"),
    TMPDIR: root,
  };
  const serve = startRollcall(["serve", "--out", join(root, "out"), "--port", "0", "--workers", "1"], { env });
  onTestFinished(async () => {
    serve.child.kill("SIGTERM");
    await serve.ended;
  });
  const origin = await vi.waitFor(
    () => {
      const found = /listening on (\S+)/.exec(serve.stdout())?.[1];
      expect(found, serve.stderr()).toBeDefined();
      return found!;
    },
    { timeout: 60_000 },
  );
  const key = readFileSync(join(root, "state/rollcall/api-key"), "utf8").trim();
  const tokens = ["ok-1", "ok-2", "broken-1", "long-1"].map((id) => [id, office.mintToken(id, null)] as const);

  const activation = ([id, token]: readonly [string, string], script: Script, url: string, task = id) => ({
    activation_id: id,
    run_id: RUN,
    task_id: { taskset: "office", task_id: task },
    input: `Do it.\n${scriptLine(script)}`,
    model: { name: "stand-in", base_url: model.captureBaseUrl },
    outputs: { paths: ["*.txt"] },
    max_attempts: 1,
    tool_grants: [
      {
        type: "mcp",
        name: "office",
        required: true,
        connection: { transport: "streamable_http", url, headers: { [SESSION_TOKEN_HEADER]: token } },
      },
    ],
    reply_to: null,
  });
  const search = step(mcp("office", "web_search", { query: "invoices" }));
  const works = { steps: [search, step(shell("printf 'a report\\n' > report.txt")), step(say("The report is written."))] };
  const [one, two, bad, long] = tokens as [(typeof tokens)[0], (typeof tokens)[0], (typeof tokens)[0], (typeof tokens)[0]];
  const goesOn: Step[] = Array.from({ length: 2_000 }, (_, index) => ({ ...step(shell(`echo ${index}`)), delay_ms: 700 }));
  const body = [
    activation(one, works, office.url),
    activation(two, works, office.url, HOSTILE),
    activation(bad, works, broken.url),
    activation(long, { steps: goesOn }, office.url),
  ];
  expect(await callApi(origin, "/v1/activations", { key, body })).toMatchObject({ status: 202 });
  return { origin, key, secrets: [key, modelKey, ...tokens.map(([, token]) => token)] };
}

/** Until this many have ended; there is something to look at then. */
export async function untilEnded({ origin, key }: LiveRun, count: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const { body } = await callApi(origin, `/v1/runs/${RUN}`, { key });
      const ended = Object.values(body.ended as Record<string, number>).reduce((sum, each) => sum + each, 0);
      expect(ended).toBe(count);
    },
    { timeout: 120_000, interval: 250 },
  );
}
