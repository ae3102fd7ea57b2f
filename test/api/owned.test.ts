// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { hashApiKey, openApiKeys } from "../../src/api/api-keys.ts";
import { resultOf } from "../support/result-documents.ts";
import { tempDir } from "../support/temp-dir.ts";
import { asked, startApiRig } from "./rig.ts";

it("a key with an owner sees, takes, changes and deletes what is of its own runs only [fault C9]", async () => {
  const file = join(tempDir(), "keys");
  writeFileSync(file, `team enqueue ${hashApiKey("team-key")} runs=team-a.\nroot admin ${hashApiKey("root-key")}\n`);
  const rig = await startApiRig({ ports: { apiKeys: await openApiKeys({ single: null, file, onProblem: () => undefined }) } });
  const root = (path: string, more = {}) => rig.call(path, { key: "root-key", ...more });
  const team = (path: string, more = {}) => rig.call(path, { key: "team-key", ...more });
  await root("/v1/activations", { body: asked("act-other", { run_id: "team-b.1" }) });
  await rig.store.commit(resultOf("act-stored", { run_id: "team-b.1" })); // known from the store alone

  const { run_id: _, ...bare } = asked("act-own");
  const queued = await team("/v1/activations", { body: bare });
  expect(queued.status).toBe(202);
  const own = queued.body.activations[0].run_id as string;
  expect(own.startsWith("team-a.")).toBe(true);

  const ids = (list: string[]) => ({ activation_ids: list });
  for (const [path, more] of [
    ["/v1/runs/team-b.1", {}],
    ["/v1/runs/team%2Db.1/rows", {}],
    ["/v1/runs/team-b.1/results", {}],
    ["/v1/runs/team-b.1/pause", { method: "POST" }],
    ["/v1/runs/team-b.1/retry", { method: "POST" }],
    ["/v1/runs/team-b.1", { method: "DELETE" }],
    ["/v1/runs?after=team-b.1", {}],
    ["/v1/activations/act-other", {}],
    ["/v1/activations/act-other", { method: "DELETE" }],
    ["/v1/activations/act-other/retry", { method: "POST" }],
    ["/v1/activations/act-other/events", {}],
    ["/v1/activations/act-other/story", {}],
    ["/v1/activations/act-stored/result", {}],
    ["/v1/artifacts/act-stored/0/events.jsonl", {}],
    ["/v1/activations/state", { body: ids(["act-own", "act-other"]) }],
    ["/v1/activations/cancel", { body: ids(["act-other"]) }],
    ["/v1/activations", { body: asked("act-new", { run_id: "team-b.1" }) }],
    ["/v1/activations?again=true", { body: asked("act-stored", { run_id: own }) }],
    ["/v1/results/claim", { body: { queue: "results", worker: "w", max: 1 } }],
    ["/v1/results/queues", {}],
    ["/v1/webhooks", {}],
    ["/v1/workers?run_id=team-b.1", {}],
  ] as [string, object][])
    expect([path, (await team(path, more)).status]).toEqual([path, 403]);

  expect((await team("/v1/runs")).body.runs.map(({ run_id }: { run_id: string }) => run_id)).toEqual([own]);
  expect((await root("/v1/runs")).body.runs).toHaveLength(2);
  expect((await team(`/v1/runs/${own}`)).status).toBe(200);
  expect((await team("/v1/activations/state", { body: ids(["act-own"]) })).status).toBe(200);
  expect((await team("/v1/activations/nobodys")).status).toBe(404);
  expect((await team("/v1/activations/act-own", { method: "DELETE" })).status).toBe(200);
  expect((await root("/v1/activations/act-other")).body).toMatchObject({ state: "waiting", cancel: null });
});
