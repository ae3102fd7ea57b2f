// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { findBubblewrap } from "../sandbox/bubblewrap-binary.ts";
import { createBubblewrapProvider, DEFAULT_RUNTIME_ROOT } from "../sandbox/bubblewrap.ts";
import { createHostProvider } from "../sandbox/host.ts";
import type { SandboxProvider, SandboxProviderName } from "../sandbox/types.ts";

/** Where this host's sandboxes keep their owner records. */
export function sandboxStateDir(settings: Settings): string {
  return join(settings.state_dir, "worker");
}

/** What all root workers of this host share; null for others. */
export function sharedSandboxRoot(): string | null {
  return process.getuid?.() === 0 ? DEFAULT_RUNTIME_ROOT : null;
}

/** A sandbox provider by its name. `vendoredBwrap`: the bwrap inside the Codex package, used when PATH has none. */
export async function makeProvider(
  name: SandboxProviderName,
  { settings, env, vendoredBwrap }: { settings: Settings; env: Environment; vendoredBwrap: string | null },
): Promise<SandboxProvider> {
  const stateDir = sandboxStateDir(settings);
  if (name === "host") return createHostProvider({ stateDir });
  const bwrapPath = await findBubblewrap({ path: env["PATH"] ?? "", ...(vendoredBwrap === null ? {} : { vendored: vendoredBwrap }) });
  return createBubblewrapProvider({ stateDir, bwrapPath });
}
