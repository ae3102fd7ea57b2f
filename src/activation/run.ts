// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { CodexBinary } from "../codex/binary.ts";
import type { SkillSet } from "../codex/skills.ts";
import type { KeyOrigins } from "../contract/key-origins.ts";
import { redactError, type LiveSecrets } from "../redact/index.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/types.ts";
import { beginAttempt, requireModelKey } from "./attempt.ts";
import { codexFor, launchCommand, openSandbox, placeFiles, planSession, writeConfig } from "./open-sandbox.ts";
import { placeSkills } from "./place-skills.ts";
import type { Claim, RunEnd } from "./ports.ts";
import { preflight } from "./preflight.ts";
import { withIgnoredInstructions } from "./project-instructions.ts";
import { newReport } from "./report.ts";
import { runCodex } from "./run-codex.ts";
import { settle } from "./settle.ts";
import type { AttemptTelemetry } from "./telemetry.ts";

/** What a worker brings to every activation it runs. */
export interface RunPorts {
  store: ArtifactStore;
  providers: Readonly<Record<string, SandboxProvider | undefined>>;
  defaultProvider: string;
  /** Each of another version; the first is for activations that name none. */
  codexes: readonly [CodexBinary, ...CodexBinary[]];
  /** Values of the variables that activations may name as their model key. */
  modelKeys: Readonly<Record<string, string | undefined>>;
  defaultKeyEnv: string;
  /** Where the keys of these variables may be sent. */
  keyOrigins: KeyOrigins;
  systemPrompt: string | undefined;
  skills: SkillSet;
  /** How long each step of making a sandbox may take: itself, placing files, bwrap's start. */
  createSeconds: number;
  worker: { id: string; host: string; version: string };
  /** Gets each sandbox whose removal failed: whoever has the set tries again. */
  abandoned: Set<Pick<Sandbox, "id" | "destroy">>;
  /** So that no log line of this process shows a secret of a running activation. */
  liveSecrets: LiveSecrets;
  /** Hears of each stage and of each end. */
  telemetry: AttemptTelemetry;
  log: Logger;
}

/**
 * One claimed activation from its attempt number to its end. An agent that fails is a result; this throws only when nothing
 * could be saved. Whatever happens, the sandbox is gone afterwards, or its owner record tells a reaper.
 */
export async function runActivation(claim: Claim, ports: RunPorts): Promise<RunEnd> {
  const begun = await beginAttempt(claim, ports);
  if (begun.ended !== null) return { kind: "ended", result: begun.ended };
  const { context, forgetSecrets } = begun;
  const { telemetry } = ports;
  const { stage } = telemetry;
  const report = newReport(context, ports);
  try {
    context.progress({ stage: "starting" });
    requireModelKey(context, ports);
    const codex = await codexFor(context, ports);
    const sandbox = await stage("sandbox", () => openSandbox(context, codex, ports, claim.signal));
    report.opened(sandbox);
    await stage("place", () => placeFiles(context, sandbox, ports, claim.signal));
    await stage("skills", () => placeSkills(context, sandbox, ports, claim.signal));
    const command = launchCommand(context, sandbox, codex);
    const granted = await stage("preflight", () => preflight(context, sandbox, { profile: codex.profile, command }, claim.signal));
    report.checked(granted);
    const plan = await stage("plan", () => {
      const planned = planSession(context, granted.grants, codex, ports.systemPrompt);
      return withIgnoredInstructions(planned, sandbox, codex.profile, context.activation.codex);
    });
    report.planned(plan);
    report.kept(await stage("configure", () => writeConfig(context, sandbox, plan, { ports, stop: claim.signal })));
    const launch = { command, prompt: plan.prompt, beginWithinMs: ports.createSeconds * 1_000, signal: claim.signal };
    const end = await stage("codex", () => runCodex(context, sandbox, launch));
    await stage("classify", () => report.ended(end));
    context.progress({ stage: "collecting", counts: end.session.counts() });
    await stage("collect", () => report.collect());
  } catch (error) {
    report.broken(error, claim.signal);
  }
  try {
    await stage("destroy", () => report.destroySandbox());
    const left = report.finish();
    const end = await stage("commit", () => settle(claim, context, left, ports));
    telemetry.ended(left, end, context.secrets.replacements);
    return end;
  } catch (error) {
    throw redactError(context.secrets, error); // whoever logs it knows the secrets no more
  } finally {
    context.progress({ stage: "ended" });
    forgetSecrets();
  }
}
