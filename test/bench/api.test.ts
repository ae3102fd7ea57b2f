// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { runRound } from "../../bench/api-load/round.ts";

it("what 2 clients queue while readers watch and some stop reading is all there once, and every reader is told its end; nothing is read ahead without bound", async () => {
  const flood = 10;
  const round = await runRound({
    entry: fileURLToPath(new URL("../../dist/workers/api.js", import.meta.url)),
    tasks: 300,
    batch: 50,
    clients: 2,
    readers: 8,
    flooded: 2,
    floodMb: flood,
    stop: true,
    ends: 100,
    say: () => undefined,
  });
  expect(round.faults).toEqual([]);
  expect(round.read_ahead_mb.most).toBeGreaterThan(0);
  expect(round.read_ahead_mb.most).toBeLessThan(flood - 2); // what a connection takes by itself, and a page
  expect(round.delivery_ms.length).toBeGreaterThan(0);
}, 240_000);
