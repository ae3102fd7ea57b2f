// SPDX-License-Identifier: Apache-2.0
import { describe, it } from "vitest";
import { DEFAULT_QUEUE_SETTINGS } from "../../src/queue/settings.ts";
import { AWAY, endsWhileAway } from "./redis-away.ts";

const { lock_duration_ms, lock_renew_ms, stalled_interval_ms } = DEFAULT_QUEUE_SETTINGS;

describe("a session that ends while Redis is, with the settings of service,", () => {
  it.concurrent.each(Object.entries(AWAY).flatMap(([how, away]) => [40, 75].map((seconds) => [how, seconds, away] as const)))(
    "%s for %i s: its result is saved at once, told once afterwards, and it is not run again [D3]",
    async (_, seconds, away) => endsWhileAway(away, seconds * 1_000, { lock_duration_ms, lock_renew_ms, stalled_interval_ms }),
    600_000,
  );
});
