// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";

/** This program's version, from its package.json (beside dist/ when built). */
export function rollcallVersion(): string {
  for (const relative of ["../../../package.json", "../../package.json"]) {
    try {
      const found = JSON.parse(readFileSync(new URL(relative, import.meta.url), "utf8")) as { name?: string; version?: string };
      if (found.name === "rollcall" && found.version !== undefined) return found.version;
    } catch {
      // not there: the other place
    }
  }
  return "unknown";
}
