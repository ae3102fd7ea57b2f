// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

const shared = {
  // Forks, not threads: a sandbox dies with the thread that started it (parent-death signal is per thread).
  pool: "forks" as const,
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // A worker runs one file after the other in one process: loading what they all import once is a fifth of a run. So a file leaves
  // its process as it found it, which test/support/leaves-nothing.ts checks.
  isolate: false,
  setupFiles: ["test/support/leaves-nothing.ts"],
  // More than the cores of a small machine: most files wait for real processes half of their time.
  maxWorkers: 4,
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
          exclude: ["test/**/*.{slow,long}.test.ts"],
        },
      },
      // On one Node version only.
      {
        test: {
          ...shared,
          name: "slow",
          include: ["test/**/*.slow.test.ts"],
          testTimeout: 240_000,
        },
      },
      // Minutes each; not in `npm test`, which says so.
      {
        test: {
          ...shared,
          name: "long",
          include: ["test/**/*.long.test.ts"],
          testTimeout: 600_000,
        },
      },
    ],
  },
});
