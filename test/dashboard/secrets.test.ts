// SPDX-License-Identifier: Apache-2.0
import { appRoutes } from "@bull-board/api/dist/routes.js";
import { expect, it } from "vitest";
import { asked } from "../api/rig.ts";
import { completes } from "../queue/rig.ts";
import { KEYS, startBoardRig } from "./signed-in.ts";

/** Its middle survives every kind of escaping. */
const CORE = "FAKE0middle0FAKE";
const TOKEN = `a"\\b ${CORE} %`;
const FORMS = [CORE, Buffer.from(TOKEN).toString("base64").slice(8, 24)];

const SECRETS = {
  tool_grants: [
    {
      type: "mcp",
      name: "office",
      required: true,
      connection: { transport: "streamable_http", url: `http://u:${CORE}@127.0.0.1/`, headers: { H: TOKEN } },
    },
    { type: "mcp", name: "s", required: true, connection: { transport: "stdio", command: "c", env: { E: TOKEN } } },
  ],
  sandbox: { env: { MY_TOKEN: TOKEN, M: { value: TOKEN, secret: true } } },
  model: { name: "m", api_key: CORE },
};

it("secrets of grants, variables and the model are in no answer of the dashboard, while an activation waits and when it has ended", async () => {
  const { rig, board } = await startBoardRig();
  /** Every path that can be asked for, for every job; together as one text. */
  const everything = async (): Promise<string> => {
    let all = "";
    for (const [queue, prefix] of [
      ["activations", ""],
      ["final", "f-"],
      ["results-a", ""],
    ] as const)
      for (const id of ["act-secret", "act-plain"])
        for (const { method, route } of appRoutes.api) {
          if (method !== "get") continue;
          const path = [route]
            .flat()[0]!
            .replace(":queueName", queue)
            .replace(":jobId", prefix + id);
          const answer = await board(`${path}?activeQueue=${queue}`);
          all += `${path} ${JSON.stringify([...answer.headers])} ${await answer.text()}\n`;
        }
    return all;
  };
  const body = [
    asked("act-secret", { ...SECRETS, reply_to: "results-a" }),
    asked("act-plain", { input: `say ${CORE}-control`, reply_to: "results-a" }),
  ];
  const queued = await rig.call("/v1/activations", { key: KEYS.enqueue, body });
  expect([queued.status, queued.body.errors]).toEqual([202, undefined]);
  const found = async (): Promise<void> => {
    const all = await everything();
    expect(all).toContain("office/act-secret"); // it is shown
    expect(all.match(new RegExp(`${CORE}-control`, "g"))?.length).toBeGreaterThan(0); // the search finds what is there
    for (const form of FORMS) expect(all.replaceAll(`${CORE}-control`, "")).not.toContain(form);
    expect(all).not.toMatch(/ciphertext|"sealed"/);
    for (const key of Object.values(KEYS)) expect(all).not.toContain(key);
  };
  await found();
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  for (const id of ["act-secret", "act-plain"]) await rig.ended(id, 0, 60_000);
  await found();
}, 150_000);
