// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A directory that is gone after the running test; a concurrent test gives the hook of its own context. */
export function tempDir(onFinished: (callback: () => void) => void = onTestFinished): string {
  const path = mkdtempSync(join(tmpdir(), "rollcall-test-"));
  onFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
