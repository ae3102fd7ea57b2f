// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A directory that is gone after the surrounding suite. Call it while the suite is being defined. */
export function suiteDir(): string {
  const path = mkdtempSync(join(tmpdir(), "rollcall-suite-"));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
