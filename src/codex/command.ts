// SPDX-License-Identifier: Apache-2.0
import { posix } from "node:path";
import type { SessionActivation } from "../contract/activation.ts";
import type { CodexBinary } from "./binary.ts";

const OPTIONS = ["exec", "--json", "--strict-config", "--skip-git-repo-check"];
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface CodexCommandInput {
  binary: Pick<CodexBinary, "entry" | "tools">;
  /** Where the binary's tree is, seen from inside. */
  runtimeDir: string;
  /** Inside paths. */
  paths: { workdir: string; home: string; codexHome: string; tmp: string };
  modelKey: string;
  sandboxEnv: SessionActivation["sandbox"]["env"];
  /** PATH inside, when the usual one does not do. */
  path?: string;
}

export interface CodexCommand {
  argv: string[];
  /** The whole environment: nothing of the worker's. Holds the model key. */
  env: Record<string, string>;
  cwd: string;
}

/**
 * How Codex is started: natively, without a shell, its prompt on stdin (`-`), so that argv and env stay small whatever
 * the input. Unknown keys of config.toml are errors (`--strict-config`); otherwise Codex passes over them in silence. Pure.
 */
export function codexCommand(input: CodexCommandInput): CodexCommand {
  const { binary, runtimeDir, paths } = input;
  const path = input.path ?? SYSTEM_PATH;
  return {
    argv: [posix.join(runtimeDir, binary.entry), ...OPTIONS, "--cd", paths.workdir, "--", "-"],
    env: {
      ...plainEnv(input.sandboxEnv),
      PATH: binary.tools === null ? path : `${posix.join(runtimeDir, binary.tools)}:${path}`,
      HOME: paths.home,
      CODEX_HOME: paths.codexHome,
      TMPDIR: paths.tmp,
      XDG_CACHE_HOME: posix.join(paths.home, ".cache"),
      LANG: "C.UTF-8",
      OPENAI_API_KEY: input.modelKey,
      RUST_LOG: "error",
    },
    cwd: paths.workdir,
  };
}

/** Of an activation. Holds secrets. */
export function plainEnv(env: SessionActivation["sandbox"]["env"]): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, entry]) => [name, typeof entry === "string" ? entry : entry.value]));
}
