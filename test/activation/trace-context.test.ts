// SPDX-License-Identifier: Apache-2.0
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { request } from "node:http";
import { serveOnLoopback, type LoopbackServer } from "../../examples/stand-ins/loopback.ts";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { say, scriptLine, step } from "../../examples/stand-ins/script.ts";
import { noAttemptTelemetry } from "../../src/activation/telemetry.ts";
import { attemptRunner, codexVersions, TEST_KEY } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const dir = suiteDir();
let model: ModelServer;
let office: OfficeTools;
let listening: LoopbackServer;
let asked: { method: string | undefined; url: string | undefined; traceparent: unknown }[] = [];

beforeAll(async () => {
  model = await startModelServer({ apiKey: TEST_KEY });
  office = await startOfficeTools();
  listening = await serveOnLoopback((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    asked.push({ method, url, traceparent: headers["traceparent"] });
    const onward = request(new URL(url ?? "", office.url), { ...(method === undefined ? {} : { method }), headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
});
afterAll(() => Promise.all([model.close(), office.close(), listening.close()]));

describe.each(await codexVersions())("Codex $name", ({ name, codex }) => {
  const session = async (traceparent: string | undefined): Promise<typeof asked> => {
    asked = [];
    const runner = await attemptRunner(`${dir}/${name}-${traceparent ?? "plain"}`, codex, {
      telemetry: { ...noAttemptTelemetry, traceparent: () => traceparent },
    });
    const { end } = await runner.outcome({
      activation_id: "act-1",
      task_id: { taskset: "t", task_id: "1" },
      input: `Go.\n${scriptLine({ steps: [step(say("done"))] })}`,
      model: { name: "stand-in", base_url: model.captureBaseUrl },
      tool_grants: [
        { type: "mcp", name: "office", required: true, connection: { transport: "streamable_http", url: `${listening.origin}/mcp` } },
      ],
    });
    expect(end).toMatchObject({ kind: "ended", result: { status: "completed" } });
    return asked;
  };
  const requests = (of: typeof asked): string[] => of.map(({ method, url }) => `${method} ${url}`).sort();

  // A server with headers, and without Authorization, is looked at for OAuth by 0.144.4: one that had none before must not be for the trace's sake.
  it("asks a tool server for the same with a trace as without one, and tells it and the model of the trace", async () => {
    const before = model.log.total;
    const plain = await session(undefined);
    const traced = await session(TRACEPARENT);
    expect(requests(traced)).toEqual(requests(plain));
    expect(new Set(plain.map(({ traceparent }) => traceparent))).toEqual(new Set([undefined]));
    expect(new Set(traced.map(({ traceparent }) => traceparent))).toEqual(new Set([TRACEPARENT]));
    const calls = model.log.requests().slice(before - model.log.total);
    expect(calls.map(({ headers }) => headers["traceparent"])).toEqual([undefined, TRACEPARENT]);
  });
});
