// SPDX-License-Identifier: Apache-2.0
import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { endEarlierAttempts } from "./end-earlier.ts";
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
    create: (spec, signal) => createSandbox(resolve(options.stateDir), spec, signal),
    endEarlier: (owner) => endEarlierAttempts(resolve(options.stateDir), owner),
    probe: () =>
      Promise.resolve({
        ok: true,
        summary: "no sandbox: commands run with all rights of this user, on its files and beside its processes",
        uidPerActivation: false,
        limits: [],
      }),
  };
}

async function createSandbox(stateDir: string, spec: SandboxSpec, signal: AbortSignal | undefined): Promise<Sandbox> {
  try {
    signal?.throwIfAborted();
    const parent = recordsDir(stateDir);
    await mkdir(parent, { recursive: true, mode: 0o700 });
    const space = await openSpace({ stateDir, parent, provider: "host", spec, lease: null });
    if (signal?.aborted === true) await space.close();
    signal?.throwIfAborted();
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
