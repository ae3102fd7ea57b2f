// SPDX-License-Identifier: Apache-2.0
import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { endHostProcesses, startOnHost } from "./host-process.ts";
import { OneSandbox } from "./one-sandbox.ts";
import { recordsDir } from "./owner-record.ts";
import { openSpace, sandboxFailed } from "./space.ts";
import type { Sandbox, SandboxProvider, SandboxSpec } from "./types.ts";

/**
 * No isolation at all: the command runs as the worker's user and sees what that user sees. For machines without
 * Linux namespaces and for development. Besides `env`, a command gets ROLLCALL_SANDBOX_ID. Set TMPDIR to `inside.tmp`:
 * Codex warns on every run when CODEX_HOME lies under its temporary directory.
 */
export function createHostProvider(options: { stateDir: string }): SandboxProvider {
  return {
    name: "host",
    create: (spec) => createSandbox(resolve(options.stateDir), spec),
    probe: () =>
      Promise.resolve({
        ok: true,
        summary: "no sandbox: commands run with all rights of this user, on its files and beside its processes",
        uidPerActivation: false,
        limits: [],
      }),
  };
}

async function createSandbox(stateDir: string, spec: SandboxSpec): Promise<Sandbox> {
  try {
    const parent = recordsDir(stateDir);
    await mkdir(parent, { recursive: true, mode: 0o700 });
    const space = await openSpace({ stateDir, parent, provider: "host", spec, lease: null });
    return new OneSandbox({
      id: spec.id,
      provider: "host",
      space,
      inside: space.paths,
      runtimeDir: spec.runtime.hostDir,
      launch: (argv, { env, cwd }, onStart) => startOnHost({ mark: space.mark, argv, env, cwd, onStart }),
      endStragglers: async () => ((await endHostProcesses(space.mark, null)) ? null : "its processes did not end"),
    });
  } catch (error) {
    throw sandboxFailed(spec.id, error);
  }
}
