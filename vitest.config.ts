// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    include: ["test/**/*.test.ts"],
    // Forks, not threads: a sandbox dies with the thread that started it (parent-death signal is per thread).
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    allowOnly: false,
    dangerouslyIgnoreUnhandledErrors: false,
  },
});
