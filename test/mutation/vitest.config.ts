// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

/** The quick tests of the parts that are mutated: no processes, no Redis. Run by scripts/test-mutation.mjs. */
export default defineConfig({
  test: {
    include: [
      "test/redact/*.test.ts",
      "test/activation/{plan,classify}.test.ts",
      "test/codex/config.test.ts",
      "test/contract/{admission,grant}.test.ts",
    ],
    setupFiles: ["test/mutation/setup.ts"],
    env: { REDACT_RUNS: "8" },
    testTimeout: 60_000,
  },
});
