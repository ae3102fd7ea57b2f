// SPDX-License-Identifier: Apache-2.0
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findCodex, type CodexBinary } from "../../src/codex/binary.ts";
import { codexCommand } from "../../src/codex/command.ts";
import { codexConfig, type CodexConfigInput } from "../../src/codex/config.ts";
import { renderConfig } from "../../src/codex/render-config.ts";
import { Session, type SessionFacts } from "../../src/codex/session.ts";
import { StderrTail } from "../../src/codex/stderr.ts";
import { readStdout } from "../../src/codex/stdout.ts";
import { verdictOf, type Verdict } from "../../src/codex/verdict.ts";
import { promptOf } from "../../src/contract/input.ts";
import { tempDir } from "../support/temp-dir.ts";
import { PROFILED_VERSIONS } from "../../src/codex/profile.ts";

/** The real binaries: those that have a profile, the default first, and whatever CODEX_TEST_BIN names. */
export async function realBinaries(): Promise<CodexBinary[]> {
  const found = await Promise.all(PROFILED_VERSIONS.map((version) => findCodex({ version })));
  const named = process.env["CODEX_TEST_BIN"];
  if (named === undefined || named === "") return found;
  const version = /\d+\.\d+\.\d+\S*/.exec(execFileSync(named, ["--version"], { encoding: "utf8" }))?.[0] ?? "unknown";
  return [...found, await findCodex({ codexBin: named, version, unknown: "try" })];
}

export interface Launched {
  facts: SessionFacts;
  verdict: Verdict;
  stderr: string;
  threadFiles: string;
}

/**
 * Runs the real Codex as the worker does, but without a sandbox: what is tested is Codex and what we write for it.
 * `files` are put into the workdir. Codex is killed after 90 s.
 */
export async function launch(
  binary: CodexBinary,
  make: (paths: { workdir: string }) => CodexConfigInput,
  files: Readonly<Record<string, string>> = {},
): Promise<Launched> {
  const root = tempDir();
  const paths = { workdir: join(root, "work"), home: join(root, "home"), codexHome: join(root, "home/.codex"), tmp: join(root, "tmp") };
  for (const path of Object.values(paths)) await mkdir(path, { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(paths.workdir, path, ".."), { recursive: true });
    await writeFile(join(paths.workdir, path), text);
  }
  const input = { ...make(paths), profile: binary.profile };
  await writeFile(join(paths.codexHome, "config.toml"), renderConfig(codexConfig(input)), { mode: 0o600 });
  const { argv, env, cwd } = codexCommand({
    binary,
    runtimeDir: binary.hostDir,
    paths,
    modelKey: "FAKE-KEY",
    sandboxEnv: input.activation.sandbox.env,
  });
  const child = spawn(argv[0]!, argv.slice(1), { env, cwd, stdio: "pipe", timeout: 90_000, killSignal: "SIGKILL" });
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  child.stdin.on("error", () => undefined); // Codex may end before it reads
  child.stdin.end(promptOf(input.activation.input));
  const tail = child.stderr.pipe(new StderrTail());
  tail.resume();
  const session = new Session("key");
  for await (const record of readStdout(child.stdout)) session.apply(record);
  const [code, signal] = await closed;
  const facts = session.facts();
  return {
    facts,
    verdict: verdictOf(facts, { code, signal, timedOut: false }, binary.profile),
    stderr: tail.window().text,
    threadFiles: join(paths.codexHome, "sessions"),
  };
}
