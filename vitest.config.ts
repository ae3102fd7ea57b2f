// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

const shared = {
  // Forks, not threads: a sandbox dies with the thread that started it (parent-death signal is per thread).
  pool: "forks" as const,
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    allowOnly: false,
    projects: [
      {
        test: {
          ...shared,
          name: "tests",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.slow.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      // Mostly waiting (time-outs of the real Codex): four at once, on one Node version only.
      {
        test: {
          ...shared,
          name: "slow",
          include: ["test/**/*.slow.test.ts"],
          maxWorkers: 4,
          testTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
