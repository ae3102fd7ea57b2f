// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { codexCommand, type CodexCommandInput } from "../../src/codex/command.ts";

const input: CodexCommandInput = {
  binary: { entry: "bin/codex", tools: "codex-path" },
  runtimeDir: "/opt/runtime",
  paths: { workdir: "/workspace", home: "/home/agent", codexHome: "/home/agent/.codex", tmp: "/tmp" },
  modelKey: "key",
  sandboxEnv: { PLAIN: "a", HIDDEN: { value: "b", secret: true } },
};

describe("codexCommand", () => {
  it("starts Codex natively, its prompt on stdin, its options strict", () => {
    const { argv, cwd } = codexCommand(input);
    expect(argv).toEqual([
      "/opt/runtime/bin/codex",
      "exec",
      "--json",
      "--strict-config",
      "--skip-git-repo-check",
      "--cd",
      "/workspace",
      "--",
      "-",
    ]);
    expect(cwd).toBe("/workspace");
  });

  it("builds the environment from nothing: small, nothing of the worker's, no colour [A2 R51]", () => {
    process.env["ROLLCALL_TEST_LEAK"] = "leaked";
    const { env, argv } = codexCommand(input);
    delete process.env["ROLLCALL_TEST_LEAK"];
    expect(env).toEqual({
      PLAIN: "a",
      HIDDEN: "b",
      PATH: "/opt/runtime/codex-path:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: "/home/agent",
      CODEX_HOME: "/home/agent/.codex",
      TMPDIR: "/tmp",
      XDG_CACHE_HOME: "/home/agent/.cache",
      LANG: "C.UTF-8",
      OPENAI_API_KEY: "key",
      RUST_LOG: "error",
    });
    expect(argv.join(" ").length).toBeLessThan(4096);
  });

  it("does not let a variable of the sandbox take the place of one that Codex depends on", () => {
    const { env } = codexCommand({ ...input, sandboxEnv: { CODEX_HOME: "/elsewhere", RUST_LOG: "trace" } });
    expect(env).toMatchObject({ CODEX_HOME: "/home/agent/.codex", RUST_LOG: "error" });
  });
});
