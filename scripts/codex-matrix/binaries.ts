// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { findCodex, type CodexBinary } from "../../src/codex/binary.ts";
import { rollcall } from "./command.ts";

/** Where this clone has a second version beside the packaged one. */
const SECOND = new URL("../../../node_modules/codex-newest/package.json", import.meta.url);

/** The executable of a version: an installed one, else `rollcall codex install` gets it. Throws Error with what that command said. */
export async function codexBinOf(version: string): Promise<string> {
  const found = (await installed(version)) ?? (await download(version));
  return join(found.hostDir, found.entry);
}

async function installed(version: string): Promise<CodexBinary | null> {
  for (const searchFrom of [undefined, SECOND]) {
    const wanted = { version, unknown: "try" as const, ...(searchFrom === undefined ? {} : { searchFrom }) };
    const found = await findCodex(wanted).catch(() => null);
    if (found !== null) return found;
  }
  return null;
}

async function download(version: string): Promise<CodexBinary> {
  const { code, said } = await rollcall(["codex", "install", version], { HOME: process.env["HOME"] ?? "/nonexistent" });
  if (code !== 0)
    throw new Error(`Codex ${version} is not installed, and "rollcall codex install ${version}" ended with ${code}: ${said.slice(-2_000)}`);
  return findCodex({ version, unknown: "try" });
}
