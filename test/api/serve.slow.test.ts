// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import { processesNaming } from "../support/live-processes.ts";
import { startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";
import { callApi } from "./rig.ts";

it("one command serves one machine: an activation over HTTP is run by real Codex in a sandbox, from which the API answers 401; SIGTERM ends all of it [C7]", async () => {
  const root = tempDir();
  mkdirSync(join(root, "run"), { mode: 0o700 });
  const model = await startModelServer({ apiKey: "k" });
  onTestFinished(() => model.close());
  const env = {
    OPENAI_API_KEY: "k",
    ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
    XDG_STATE_HOME: join(root, "state"),
    XDG_RUNTIME_DIR: join(root, "run"),
    TMPDIR: root,
  };
  const serve = startRollcall(["serve", "--out", join(root, "out"), "--port", "0", "--workers", "1"], { env });
  onTestFinished(() => void serve.child.kill("SIGKILL"));
  const origin = await vi.waitFor(
    () => {
      const found = /listening on (\S+)/.exec(serve.stdout())?.[1];
      expect(found, serve.stderr()).toBeDefined();
      return found!;
    },
    { timeout: 60_000 },
  );
  const keyFile = join(root, "state/rollcall/api-key");
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  expect(serve.stderr()).toContain(keyFile);
  const key = readFileSync(keyFile, "utf8").trim();
  expect(serve.stderr() + serve.stdout()).not.toContain(key);

  const { port } = new URL(origin);
  // Bash speaks HTTP by itself, whatever the sandbox has.
  const knock = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET /v1/results/queues HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -n 1 <&3 > knock.txt; ls ${keyFile} >> knock.txt 2>&1; true`;
  const activation = {
    activation_id: "act-1",
    run_id: "run-1",
    task_id: { taskset: "t", task_id: "1" },
    input: `Knock.\n${scriptLine({ steps: [step(shell(`bash -c ${JSON.stringify(knock)}`)), step(say("done"))] })}`,
    model: { name: "stand-in", base_url: model.captureBaseUrl },
    outputs: { paths: ["knock.txt"] },
    reply_to: "results-http",
  };
  expect((await callApi(origin, "/v1/activations", { key, body: activation })).status).toBe(202);
  const result = await callApi(origin, "/v1/activations/act-1/result?wait=180", { key });
  expect(result).toMatchObject({ status: 200, body: { status: "completed" } });
  const knocked = await callApi(origin, "/v1/artifacts/act-1/0/outputs/knock.txt", { key });
  expect(knocked.body).toContain("HTTP/1.1 401");
  expect(knocked.body).toMatch(/No such file|Permission denied/);
  expect((await callApi(origin, "/v1/activations/act-1", { key })).body).toMatchObject({ state: "ended", last_event: { stage: "ended" } });
  expect((await callApi(origin, "/v1/results/claim", { key, body: { queue: "results-http", wait: 30 } })).body.results).toMatchObject([
    { result_id: "act-1" },
  ]);

  serve.child.kill("SIGTERM");
  const ended = await serve.ended;
  expect([ended.code, ended.stderr.includes("server stops")]).toEqual([0, true]);
  await vi.waitFor(() => expect(processesNaming(root)).toEqual([]), { timeout: 30_000 });
});
