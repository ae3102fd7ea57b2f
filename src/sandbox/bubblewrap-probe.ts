// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { messageOf } from "../errors.ts";
import { processIdentity } from "../host/process.ts";
import type { BubblewrapHost } from "./bubblewrap.ts";
import { INSIDE } from "./bubblewrap-profile.ts";
import { enforceableLimits } from "./resource-limits.ts";
import type { Sandbox, SandboxProbe, SandboxSpec } from "./types.ts";

/** Runs `true` in a real sandbox. Never throws. */
export async function probeBubblewrap(
  prepare: () => Promise<BubblewrapHost>,
  create: (spec: SandboxSpec) => Promise<Sandbox>,
): Promise<SandboxProbe> {
  const uidPerActivation = process.getuid?.() === 0;
  const failed = (why: string, fix?: string): SandboxProbe => ({
    ok: false,
    summary: `bubblewrap does not work here: ${why}`,
    ...(fix === undefined ? {} : { fix }),
    uidPerActivation,
    limits: [],
  });
  try {
    const { binary, command, disableUserns, cgroups } = await prepare();
    const sandbox = await create(probeSpec());
    const running = sandbox.exec(["/bin/true"], { env: {}, cwd: INSIDE.workdir });
    running.stdin.end();
    running.stdout.resume();
    running.stderr.resume();
    const exit = await running.exited;
    const { cleanup_error } = await sandbox.destroy();
    if (!exit.started) return failed(exit.detail, usernsFix());
    if (exit.code !== 0) return failed(`/bin/true ended with ${exit.signal ?? `exit code ${exit.code}`}`);
    if (cleanup_error !== null) return failed(cleanup_error);
    const uids = uidPerActivation
      ? "an unprivileged uid for each activation"
      : "one uid for all activations, isolated by mount and pid namespaces only";
    const nested = disableUserns ? "" : ", nested user namespaces possible (bubblewrap before 0.8)";
    return {
      ok: true,
      summary: `${binary.version} (${command}), ${uids}${nested}, network shared with the host, ${cgroups === null ? "limits by rlimit only" : `limits by cgroup v${cgroups.version}`}`,
      uidPerActivation,
      limits: enforceableLimits(uidPerActivation, cgroups),
    };
  } catch (error) {
    return failed(messageOf(error));
  }
}

function probeSpec(): SandboxSpec {
  const id = `probe-${process.pid}-${randomBytes(4).toString("hex")}`;
  const self = processIdentity();
  if (self === null) throw new Error("this process is not listed in /proc");
  return {
    id,
    owner: { activation_id: id, attempt: 1, process: self },
    runtime: { key: "none", hostDir: "/usr", only: [] },
    limits: {},
    network: { mode: "shared" },
    listeners: [],
  };
}

/** The usual reasons why an unprivileged process gets no namespaces, each with what to do. */
function usernsFix(): string {
  if (readSetting("kernel/apparmor_restrict_unprivileged_userns") === "1")
    return "AppArmor forbids user namespaces (Ubuntu 23.10 and newer): sysctl kernel.apparmor_restrict_unprivileged_userns=0, or install an AppArmor profile that allows them to bwrap";
  if (readSetting("user/max_user_namespaces") === "0") return "user namespaces are switched off: sysctl user.max_user_namespaces=15000";
  if (readSetting("kernel/unprivileged_userns_clone") === "0")
    return "user namespaces are switched off for users: sysctl kernel.unprivileged_userns_clone=1";
  if (inContainer())
    return (
      "inside a container: let it make namespaces and mount a /proc, with --security-opt seccomp=deploy/seccomp.json (or unconfined), systempaths=unconfined " +
      "(podman: unmask=ALL; Kubernetes: procMount: Unmasked) and, where AppArmor is in force, apparmor=unconfined; docs/deployment.md has all of it"
    );
  return "check that bwrap runs by hand: bwrap --unshare-all --ro-bind / / true";
}

/** The files of Docker and Podman are not always there; an overlay as root file system nearly always is. */
function inContainer(): boolean {
  if (existsSync("/.dockerenv") || existsSync("/run/.containerenv")) return true;
  try {
    return / \/ \/ .* - overlay /.test(readFileSync("/proc/self/mountinfo", "utf8"));
  } catch {
    return false;
  }
}

function readSetting(name: string): string | null {
  try {
    return readFileSync(`/proc/sys/${name}`, "latin1").trim();
  } catch {
    return null;
  }
}
