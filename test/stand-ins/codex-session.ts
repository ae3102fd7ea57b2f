// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import type { CodexBinary } from "../../src/codex/binary.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import { tempDir } from "../support/temp-dir.ts";

export interface CodexSession {
  /** Of the model, with /v1. */
  baseUrl: string;
  apiKey: string;
  prompt: string;
  /** Tool servers by name, each with the session's token. */
  servers?: Record<string, { url: string; token: string }>;
  /** Default one that Codex does not know. */
  model?: string;
  streamRetries?: number;
  /** Fills the workdir before the start. */
  prepare?: (workdir: string) => void;
  /** More lines for the top of config.toml. */
  settings?: string;
}

export interface CodexEvent {
  type: string;
  item?: { type: string; text?: string; aggregated_output?: string; tool?: string; status?: string };
  error?: { message: string };
  usage?: { input_tokens: number; output_tokens: number };
}

/** Runs the real Codex once in a directory of its own; its config.toml is written by hand, apart from the code under test elsewhere. */
export async function runCodex(
  codex: CodexBinary,
  session: CodexSession,
): Promise<{ exitCode: number | undefined; events: CodexEvent[]; stderr: string; workdir: string }> {
  const dir = tempDir();
  const [home, workdir, tmp] = ["codex-home", "work", "tmp"].map((name) => {
    mkdirSync(join(dir, name));
    return join(dir, name);
  }) as [string, string, string];
  writeFileSync(join(home, "config.toml"), configToml(session, workdir), { mode: 0o600 });
  session.prepare?.(workdir);
  const result = await execa(
    join(codex.hostDir, codex.entry),
    ["exec", "--json", "--strict-config", "--skip-git-repo-check", "--cd", workdir, "--", "-"],
    {
      input: session.prompt,
      // TMPDIR apart from CODEX_HOME, or Codex warns about helper binaries under a temporary directory.
      env: { PATH: process.env["PATH"], HOME: dir, CODEX_HOME: home, TMPDIR: tmp, OPENAI_API_KEY: session.apiKey, LANG: "C.UTF-8" },
      extendEnv: false,
      reject: false,
      timeout: 50_000,
    },
  );
  const events = result.stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as CodexEvent);
  return { exitCode: result.exitCode, events, stderr: result.stderr, workdir };
}

function configToml(session: CodexSession, workdir: string): string {
  const servers = Object.entries(session.servers ?? {}).map(
    ([name, { url, token }]) =>
      `[mcp_servers.${name}]\nurl = "${url}"\nhttp_headers = { "${SESSION_TOKEN_HEADER}" = "${token}" }\nrequired = true\n`,
  );
  return `model_provider = "rollcall"
model = "${session.model ?? "stand-in"}"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
check_for_update_on_startup = false
${session.settings ?? ""}
[analytics]
enabled = false
[features]
plugins = false
[projects."${workdir}"]
trust_level = "untrusted"
[model_providers.rollcall]
name = "rollcall"
base_url = "${session.baseUrl}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = ${session.streamRetries ?? 2}
${servers.join("")}`;
}
