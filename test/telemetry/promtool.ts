// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";

/** Runs Prometheus' own checker; what it complains about, "" for nothing. Fails with the install line where there is none. */
export function promtool(args: readonly string[], input = ""): string {
  const { status, stdout, stderr, error } = spawnSync("promtool", args, { input, encoding: "utf8" });
  if (error !== undefined)
    throw new Error("promtool is not installed (scripts/setup.sh --tests; Debian, Ubuntu: sudo apt-get install prometheus)", {
      cause: error,
    });
  return status === 0 && stderr.trim() === "" ? "" : `exit code ${status}\n${stdout}${stderr}`;
}

/** The samples of one metric, by its labels as they are written, `""` for none. */
export function samplesOf(text: string, name: string): Record<string, number> {
  const lines = [...text.matchAll(/^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/gm)];
  return Object.fromEntries(lines.filter(([, found]) => found === name).map(([, , labels = "", value]) => [labels, Number(value)]));
}
