// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

/** Into dist/web, under names that change with their content: `rollcall serve` lets browsers keep them. */
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { outDir: "../dist/web", emptyOutDir: true, target: "es2023", chunkSizeWarningLimit: 1_000, reportCompressedSize: false },
  logLevel: "warn",
});
