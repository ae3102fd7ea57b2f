// SPDX-License-Identifier: Apache-2.0
import { homedir } from "node:os";
import { join } from "node:path";
import { findCodex, type CodexBinary } from "../../src/codex/binary.ts";
import { rollcall } from "./command.ts";

/** Where `rollcall codex install` keeps what the matrix fetches, and every other worker of this user finds it. */
const STATE_DIR = join(homedir(), ".local", "state", "rollcall");
const installedIn = join(STATE_DIR, "codex");

/** The executable of a version: an installed one, else `rollcall codex install` gets it. Throws Error with what that command said. */
export async function codexBinOf(version: string): Promise<string> {
  const found = (await installed(version)) ?? (await download(version));
  return join(found.hostDir, found.entry);
}

function installed(version: string): Promise<CodexBinary | null> {
  return findCodex({ version, installedIn, unknown: "try" }).catch(() => null);
}

async function download(version: string): Promise<CodexBinary> {
  const { code, said } = await rollcall(["codex", "install", version], { HOME: homedir(), ROLLCALL_STATE_DIR: STATE_DIR });
  if (code !== 0)
    throw new Error(`Codex ${version} is not installed, and "rollcall codex install ${version}" ended with ${code}: ${said.slice(-2_000)}`);
  return findCodex({ version, installedIn, unknown: "try" });
}
