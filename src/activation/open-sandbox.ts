// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { filesToPlace } from "../artifacts/placed-files.ts";
import { putText } from "../artifacts/evidence.ts";
import { promptOf } from "../contract/input.ts";
import type { Artifact } from "../contract/result.ts";
import type { ToolGrant } from "../contract/grant.ts";
import { binaryStamp, type CodexBinary } from "../codex/binary.ts";
import { codexCommand, type CodexCommand } from "../codex/command.ts";
import { codexConfig } from "../codex/config.ts";
import { renderConfig } from "../codex/render-config.ts";
import { processIdentity } from "../host/process.ts";
import type { Sandbox, SandboxPaths, SandboxSpec } from "../sandbox/types.ts";
import type { AttemptContext } from "./attempt.ts";
import { inTime } from "./in-time.ts";
import { planServers } from "./plan.ts";
import type { RunPorts } from "./run.ts";
import { asStageFailure, stageFailure } from "./stage-failure.ts";
import type { ObservationGap } from "../contract/observation.ts";

/** What Codex will be given; decided before anything is made. */
export interface SessionPlan {
  prompt: string;
  /** Text of config.toml for a workdir seen at this inside path. */
  config: (workdir: string) => string;
  gaps: ObservationGap[];
}

/** Grants that are to be served, settings and input to a plan. Pure. Throws StageFailure "config_invalid". */
export function planSession(
  { activation, capture_key, traceparent }: AttemptContext,
  grants: readonly ToolGrant[],
  codex: CodexBinary,
  systemPrompt: string | undefined,
): SessionPlan {
  const { mcp_startup_timeout_seconds: startupSeconds, mcp_tool_timeout_seconds: toolSeconds } = activation.codex;
  try {
    const { servers, gaps } = planServers(grants, { startupSeconds, toolSeconds, traceparent }, codex.profile);
    return {
      prompt: promptOf(activation.input),
      config: (workdir) =>
        renderConfig(
          codexConfig({ profile: codex.profile, activation, captureKey: capture_key, workdir, systemPrompt, servers, traceparent }),
        ),
      gaps,
    };
  } catch (error) {
    throw asStageFailure(error, "config_invalid");
  }
}

/**
 * Which Codex this activation runs. Throws StageFailure "codex_version_mismatch" when this worker has only others, and
 * "sandbox_failed" when its own was removed or exchanged since it was checked: another worker may still have it.
 */
export async function codexFor({ activation, codex }: AttemptContext, { codexes }: RunPorts): Promise<CodexBinary> {
  if (codex === null) {
    const had = codexes.map(({ version }) => version).join(", ");
    throw stageFailure("codex_version_mismatch", `the activation wants Codex ${activation.codex.version}, this worker has ${had}`);
  }
  if (codex.stamp === undefined || codex.stamp === (await binaryStamp(codex).catch(() => null))) return codex;
  const path = join(codex.hostDir, codex.entry);
  throw stageFailure("sandbox_failed", `${path} was removed or exchanged since this worker started: restart the worker`);
}

/**
 * Makes the sandbox. The caller destroys it. Throws StageFailure "sandbox_failed", also when it takes too long: what a provider
 * makes after that is destroyed.
 */
export async function openSandbox(
  { activation, attempt, sandbox_id }: AttemptContext,
  codex: CodexBinary,
  ports: RunPorts,
  stop: AbortSignal,
): Promise<Sandbox> {
  const name = activation.sandbox.provider ?? ports.defaultProvider;
  const provider = ports.providers[name];
  if (provider === undefined) throw stageFailure("sandbox_failed", `this worker has no sandbox provider ${JSON.stringify(name)}`);
  const own = processIdentity();
  if (own === null) throw stageFailure("sandbox_failed", "this process is not listed in /proc");
  const { limits } = activation.sandbox;
  const owner = { activation_id: activation.activation_id, attempt, process: own, store_id: ports.store.id };
  try {
    const stayed = await provider.endEarlier(owner);
    if (stayed.length > 0) throw new Error(`an earlier attempt still runs on this host, in sandbox ${stayed.join(", ")}`);
    const spec: SandboxSpec = {
      id: sandbox_id,
      owner,
      runtime: { key: codex.key, hostDir: codex.hostDir, ...(codex.only === undefined ? {} : { only: codex.only }) },
      limits: Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined)),
      network: { mode: "shared" },
      listeners: [],
    };
    return await inTime(
      { what: "making the sandbox", seconds: ports.createSeconds, stop },
      (signal) => provider.create(spec, signal),
      (late) => void destroyLate(late, ports),
    );
  } catch (error) {
    throw asStageFailure(error, "sandbox_failed");
  }
}

async function destroyLate(sandbox: Sandbox, { log, abandoned }: RunPorts): Promise<void> {
  const { cleanup_error } = await sandbox.destroy();
  if (cleanup_error !== null) abandoned.add(sandbox);
  log.warn({ sandbox: sandbox.id, cleanup_error }, "a sandbox was ready after nobody waited for it any more; it was destroyed");
}

/** Puts the activation's files into the sandbox; a granted server's program may be among them. */
export async function placeFiles(context: AttemptContext, sandbox: Sandbox, ports: RunPorts, stop: AbortSignal): Promise<void> {
  try {
    await inTime({ what: "placing files in the sandbox", seconds: ports.createSeconds, stop }, async (signal) => {
      for await (const file of filesToPlace(context.activation.sandbox.files, ports.store)) {
        signal.throwIfAborted();
        await sandbox.place(file.path, file.bytes, file.mode);
      }
    });
  } catch (error) {
    throw asStageFailure(error, "sandbox_failed");
  }
}

/** Writes config.toml (0600) into the sandbox, last, over whatever lies there, and keeps it, redacted, as evidence. */
export async function writeConfig(
  context: AttemptContext,
  sandbox: Sandbox,
  plan: SessionPlan,
  { ports, stop }: { ports: RunPorts; stop: AbortSignal },
): Promise<Artifact> {
  const { workdir, codexHome } = sandbox.inside;
  let config: string;
  try {
    config = plan.config(workdir);
  } catch (error) {
    throw asStageFailure(error, "config_invalid");
  }
  try {
    await inTime({ what: "writing Codex's configuration", seconds: ports.createSeconds, stop }, () =>
      sandbox.place(`${codexHome}/config.toml`, Buffer.from(config), 0o600),
    );
  } catch (error) {
    throw asStageFailure(error, "sandbox_failed");
  }
  return putText(context.evidence, "config.toml", config);
}

/** The command for a furnished sandbox. Pure. */
export function launchCommand(
  context: AttemptContext,
  sandbox: { inside: SandboxPaths; runtimeDir: string },
  codex: CodexBinary,
): CodexCommand {
  return codexCommand({
    binary: codex,
    runtimeDir: sandbox.runtimeDir,
    paths: sandbox.inside,
    modelKey: context.modelKey,
    sandboxEnv: context.activation.sandbox.env,
  });
}
