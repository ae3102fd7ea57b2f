// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { checkedCodex, PACKAGED_CODEX_VERSION, type CodexBinary } from "../codex/binary.ts";
import { codexTrees, type CodexTree } from "../codex/package-trees.ts";
import type { Settings } from "../config/settings.ts";
import { messageOf } from "../errors.ts";

/** A version that is here and cannot be run. */
export interface LeftOut {
  version: string;
  why: string;
}

/** Where `rollcall codex install` puts what is not packaged. */
export function installedCodexDir({ state_dir }: Settings): string {
  return join(state_dir, "codex");
}

/**
 * The Codex that the settings name, and every other one that is here; each checked, all at once. Throws RollcallError when the
 * named one cannot be run ({@link checkedCodex} says how); of the others it tells which cannot.
 */
export async function codexesOf(settings: Settings): Promise<{ codexes: readonly [CodexBinary, ...CodexBinary[]]; leftOut: LeftOut[] }> {
  const where = { installedIn: installedCodexDir(settings), unknown: settings.codex.unknown_version };
  const version = settings.codex_version ?? PACKAGED_CODEX_VERSION;
  const { codex_bin: codexBin } = settings;
  const trees = (await codexTrees(where)).filter((tree) => tree.version !== version);
  const leftOut: LeftOut[] = [];
  const otherOne = (tree: CodexTree): Promise<CodexBinary | null> =>
    checkedCodex({ ...where, version: tree.version }).catch((error: unknown) => {
      leftOut.push({ version: tree.version, why: messageOf(error) });
      return null;
    });
  const [codex, others] = await Promise.all([
    checkedCodex({ ...where, version, ...(codexBin === undefined ? {} : { codexBin }) }),
    Promise.all(trees.map(otherOne)),
  ]);
  return { codexes: [codex, ...others.filter((one) => one !== null)], leftOut };
}
