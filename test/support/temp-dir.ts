// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A directory that is gone after the running test. */
export function tempDir(): string {
  const path = mkdtempSync(join(tmpdir(), "rollcall-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
