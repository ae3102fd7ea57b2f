// SPDX-License-Identifier: Apache-2.0
import { describe, it } from "vitest";
import { AWAY, endsWhileAway } from "./redis-away.ts";

// The same with the durations of service: redis-away.long.test.ts.
describe("a session that ends while Redis, for longer than the lock, is", () => {
  it.concurrent.each(Object.entries(AWAY))(
    "%s: its result is saved at once, told once afterwards, and it is not run again [D3]",
    async (_, away) => endsWhileAway(away, 5_000),
    120_000,
  );
});
