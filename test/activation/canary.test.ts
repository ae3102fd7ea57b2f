// SPDX-License-Identifier: Apache-2.0
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, step } from "../../examples/stand-ins/script.ts";
import { CANARY_MESSAGE, newCanary, type Canary } from "../../src/activation/canary.ts";
import { noAttemptTelemetry } from "../../src/activation/telemetry.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import { EVIDENCE } from "../../src/artifacts/evidence.ts";
import { attemptSchema, resultSchema } from "../../src/contract/result.ts";
import { createLogger } from "../../src/logging.ts";
import { buildSecretSet, LiveSecrets } from "../../src/redact/index.ts";
import { attemptRunner, codexVersions, TEST_KEY } from "../support/attempt.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { tempDir } from "../support/temp-dir.ts";

const TOKEN = 'tok "q" \\b %41 zz-canary-zz';
const dir = suiteDir();

describe("the canary", () => {
  let root: string;
  let store: ArtifactStore;
  let logged: string;
  let canary: Canary;
  beforeEach(async () => {
    root = tempDir();
    store = await openDirectoryStore(root);
    logged = "";
    const destination = new Writable({
      write(chunk: Buffer, _encoding, done) {
        logged += chunk.toString();
        done();
      },
    });
    // "agent", "codex" and the numbers are words of every document, "redacted" stands where secrets stood, "r1" is an id.
    const values = [TOKEN, "agent", "codex", "redacted", "r1", "office", "1764", "176443", "failed"];
    const secrets = buildSecretSet(values.map((value) => ({ value })));
    const log = createLogger({ level: "info", secrets: new LiveSecrets(), destination });
    canary = newCanary({ secrets, attempt: 0, activation: { activation_id: "act-1" } }, { store, log, telemetry: noAttemptTelemetry });
  });
  const put = (path: string, text: string) => store.put("act-1", 0, path, Readable.from([text], { objectMode: false }), EVIDENCE);

  it.each([
    ["as written", TOKEN],
    ["in JSON in JSON", JSON.stringify(JSON.stringify(TOKEN))],
    ["percent-encoded", encodeURIComponent(TOKEN)],
    ["in base64", Buffer.from(`user:${TOKEN}`).toString("base64")],
  ])("withholds evidence that holds a secret %s, says where and never what", async (_, form) => {
    const artifacts = [await put("stderr.log", "[redacted] 1764\n"), await put("events.jsonl", `[1764438000.5,{"x":"${form}"}]\n`)];
    const checked = await canary.evidence(artifacts);
    expect(checked.artifacts[0]).toEqual(artifacts[0]);
    expect(checked.artifacts[1]).toMatchObject({
      path: "withheld/events.jsonl",
      uri: "dir:act-1/attempt-0/withheld/events.jsonl",
      quarantined: true,
    });
    expect(checked.gaps).toEqual([{ code: "artifact_quarantined", detail: '{"path":"withheld/events.jsonl","why":"it holds a secret"}' }]);
    expect(existsSync(join(root, "act-1/attempt-0/events.jsonl"))).toBe(false);
    expect(readFileSync(join(root, "act-1/attempt-0/withheld/events.jsonl"), "utf8")).toContain(form);
    expect(JSON.parse(logged)).toMatchObject({ level: "error", msg: CANARY_MESSAGE, where: ["events.jsonl"] });
    expect(logged).not.toContain("zz-canary-zz");
  });

  it("flags evidence that it cannot read, and leaves deliverables to those who collected them", async () => {
    const gone = { ...(await put("stderr.log", "x")), path: "never.log" };
    const output = { ...(await put("outputs/a.txt", TOKEN)), kind: "output" as const };
    const { artifacts, gaps } = await canary.evidence([gone, output]);
    expect(artifacts).toEqual([{ ...gone, quarantined: true }, output]);
    expect(gaps).toMatchObject([{ code: "artifact_quarantined" }]);
  });

  it("returns a document without secrets itself, although words of ours, ids and numbers in it are secrets' values", async () => {
    const result = resultOf("act-1", {
      status: "failed",
      metadata: { note: TOKEN },
      failure: {
        failure_kind: "agent_run_error",
        cause_code: "unknown",
        server_names: [],
        stage: "agent",
        terminal: false,
        status_code: 502,
        failure_reason: "[redacted] of 1764",
      },
    });
    expect(resultSchema.parse(result)).toEqual(result);
    expect(await canary.document("result.json", resultSchema, result)).toEqual(result);
    expect(logged).toBe("");
  });

  it("redacts a document again where a secret is left, keeps it valid, and says where", async () => {
    const attempt = attemptOf(0, {
      observations: { source: "codex", records: [], gaps: [{ code: "artifact_skipped", detail: `${TOKEN} was there` }] },
      grants: [{ name: "x", required: true }],
    });
    const again = await canary.document("attempt.json", attemptSchema, attempt);
    expect(again).toEqual({
      ...attempt,
      observations: { ...attempt.observations, gaps: [{ code: "artifact_skipped", detail: "[redacted] was there" }] },
    });
    expect(JSON.parse(logged)).toMatchObject({ level: "error", msg: CANARY_MESSAGE, where: ["attempt.json: observations.gaps.0.detail"] });
    expect(logged).not.toContain("zz-canary-zz");
  });
});

describe("a whole attempt", () => {
  let model: ModelServer;
  beforeAll(async () => {
    model = await startModelServer({ apiKey: TEST_KEY });
  });
  afterAll(() => model.close());

  it("fails any test in which something was kept with a secret in it", async () => {
    const runner = await attemptRunner(dir, (await codexVersions())[0]!.codex);
    const { store } = runner.ports;
    // A fault as it might be made: a piece of evidence that nobody redacted.
    runner.ports.store = {
      ...store,
      put: (id, attempt, path, body, facts) =>
        path === "config.toml"
          ? store.put(id, attempt, path, Readable.from([`token = ${JSON.stringify(TOKEN)}`], { objectMode: false }), facts)
          : store.put(id, attempt, path, body, facts),
    };
    const raw = {
      task_id: { taskset: "t", task_id: "canary" },
      input: `Do it.\n${scriptLine({ steps: [step(say("done"))] })}`,
      model: { name: "stand-in", base_url: model.captureBaseUrl },
      max_attempts: 1,
      sandbox: { env: { MY_TOKEN: TOKEN } },
    };
    await expect(runner.run(raw)).rejects.toThrow("the canary found");
    const result = await store.readCommit("act-run1-canary");
    expect(result?.artifacts.find(({ path }) => path === "withheld/config.toml")).toMatchObject({ quarantined: true });
    expect(result?.observations.gaps.map(({ code }) => code)).toContain("artifact_quarantined");
  });
});
