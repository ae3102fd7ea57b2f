// SPDX-License-Identifier: Apache-2.0
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import { profileFor } from "../../src/codex/profile.ts";

/**
 * A small sh program in Codex's place, with empty files in the place of what must be beside it. It says of itself that it is
 * `version`; `script` is what follows. Returns its path.
 */
export function placeFakeCodex(directory: string, script: string, version = PACKAGED_CODEX_VERSION): string {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, "codex");
  writeFileSync(path, `#!/bin/sh\ncase "$1" in --version) echo "codex-cli ${version}"; exit;; esac\n${script}`);
  chmodSync(path, 0o755);
  for (const name of profileFor(version, "try").companions) writeFileSync(join(directory, name), "", { mode: 0o755 });
  return path;
}
