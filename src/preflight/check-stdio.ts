// SPDX-License-Identifier: Apache-2.0
import type { McpGrant } from "../contract/grant.ts";
import type { CodexCommand } from "../codex/command.ts";
import { StderrTail, type StderrEnd } from "../codex/stderr.ts";
import type { Sandbox, SandboxExit, SandboxProcess } from "../sandbox/types.ts";
import { Bound, type CheckBound } from "../host/bound.ts";
import { listTools } from "./converse.ts";
import { diagnose, noReply } from "./diagnose.ts";
import type { Finding, PreflightPhase, ServerCheck } from "./finding.ts";
import { SandboxTransport } from "./sandbox-transport.ts";

type StdioConnection = Extract<McpGrant["connection"], { transport: "stdio" }>;

/** What of its own environment Codex hands to a server's process (0.144.4). */
const PASSED_ON = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
const STDERR_BYTES = 4 * 1024;

/**
 * Starts a server's program in the sandbox as Codex will, asks it for its tools, and stops it. Nothing of it runs any more
 * when this settles. Throws "sandbox_failed" while the sandbox runs something else, else only the signal's reason.
 */
export async function checkStdio(
  connection: StdioConnection,
  sandbox: Sandbox,
  codex: CodexCommand,
  given: CheckBound,
): Promise<ServerCheck> {
  const passedOn = Object.entries(codex.env).filter(([name]) => PASSED_ON.includes(name));
  const child = sandbox.exec([connection.command, ...connection.args], {
    env: { ...Object.fromEntries(passedOn), ...connection.env },
    cwd: connection.cwd ?? codex.cwd,
  });
  const stderr = new StderrTail(STDERR_BYTES);
  child.stderr.pipe(stderr).resume();
  child.stderr.on("error", () => undefined);

  const { seconds, signal } = given;
  const bound = new Bound(given);
  let phase = "initialize" as PreflightPhase;
  const ended = whetherEnded(child);
  try {
    return { tools: await listTools(new SandboxTransport(child), bound.signal, (reached) => (phase = reached)) };
  } catch (error) {
    signal.throwIfAborted();
    if (bound.signal.aborted) return { finding: noReply(phase, seconds) };
    const exit = ended();
    if (exit === null) return { finding: diagnose(error, phase) };
    return { finding: endedFinding(exit, phase, stderr.window()) };
  } finally {
    bound.end();
    await child.exited;
  }
}

/** Null as long as it runs: our stopping it afterwards is no finding. */
function whetherEnded(child: SandboxProcess): () => SandboxExit | null {
  let exit: SandboxExit | null = null;
  void child.exited.then((how) => (exit = how));
  return () => exit;
}

function endedFinding(exit: SandboxExit, phase: PreflightPhase, stderr: StderrEnd): Finding {
  if (!exit.started) {
    return { phase: "connect", case: "unreachable", what: "its program could not be started", said: { text: exit.detail } };
  }
  const how = exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
  return {
    phase,
    case: "unreachable",
    what: `its program ended (${how}) instead of answering`,
    said: stderr.text === "" ? null : { text: stderr.text.trimEnd(), startsMidStream: stderr.startsMidStream, endsAtCut: true },
  };
}
