// SPDX-License-Identifier: Apache-2.0
import type { VersionReport } from "../../scripts/codex-matrix/report.ts";
import { rollcall } from "../support/rollcall-command.ts";

/** The built matrix command. Throws Error with all that it said when it printed no reports. */
export async function matrix(...args: string[]): Promise<{ code: number | null; reports: VersionReport[] }> {
  const { code, stdout, stderr } = await rollcall([...args, "--json"], { entry: "scripts/codex-matrix.js" });
  if (!stdout.startsWith("[")) throw new Error(`the matrix ended with ${code} and said: ${stderr}`);
  return { code, reports: JSON.parse(stdout) as VersionReport[] };
}

/** Every difference with its session, one line each. */
export function differencesIn({ version, rows, run }: VersionReport): string[] {
  const told = rows.flatMap(({ scenario, kind, differences }) => differences.map((one) => ({ where: `${scenario} (${kind})`, ...one })));
  return [...run.map((one) => ({ where: "(run)", ...one })), ...told].map(
    ({ where, aspect, expected, found }) => `${version}: ${where}, ${aspect}: expected ${expected}, found ${found}`,
  );
}
