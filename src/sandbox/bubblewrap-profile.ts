// SPDX-License-Identifier: Apache-2.0
import { existsSync, lstatSync, readlinkSync } from "node:fs";
import type { SandboxPaths } from "./types.ts";

export const INSIDE: SandboxPaths = {
  workdir: "/workspace",
  home: "/home/agent",
  codexHome: "/home/agent/.codex",
  tmp: "/tmp",
};
export const INSIDE_RUNTIME = "/opt/runtime";

/**
 * Descriptors of the bwrap process; above 2, in this order. `pid1` is held open by the sandbox's process 1 alone, `command` by the
 * command and what inherits it: bwrap closes in its own processes what it does not know.
 */
export const BWRAP_FDS = { args: 3, status: 4, passwd: 5, group: 6, pid1: 7, command: 8 } as const;

/** What {@link bubblewrapArguments} cannot do without; bwrap 0.6 has them all. */
export const REQUIRED_OPTIONS = [
  "--args",
  "--json-status-fd",
  "--sync-fd",
  "--perms",
  "--size",
  "--ro-bind-data",
  "--die-with-parent",
  "--clearenv",
];

export const PASSWD = `root:x:0:0:root:/root:/sbin/nologin
agent:x:1000:1000:agent:${INSIDE.home}:/bin/sh
nobody:x:65534:65534:nobody:/:/sbin/nologin
`;
export const GROUP = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n";

/** Of /etc only what programs need to find libraries, certificates, hosts, time and file types. */
const ETC = [
  ["alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "pki", "ssl"],
  ["ld.so.cache", "ld.so.conf", "ld.so.conf.d"],
  ["gai.conf", "hosts", "nsswitch.conf", "protocols", "resolv.conf", "services"],
  ["fonts", "localtime", "magic", "magic.mime", "mime.types", "timezone"],
].flat();
const SHM_BYTES = 64 * 1024 * 1024;

export interface BubblewrapProfile {
  /** The sandbox's directories as bwrap sees them. */
  outside: SandboxPaths;
  /** Read-only binds of the program: [outside, inside]. */
  runtime: readonly (readonly [string, string])[];
  env: Readonly<Record<string, string>>;
  /** Inside path. */
  cwd: string;
  /** False where bwrap cannot (before 0.8, or setuid): then the program can make user namespaces of its own. */
  disableUserns: boolean;
}

/**
 * bwrap's options, for `--args`. The order of mounts matters: later ones cover earlier ones, and the root is made
 * read-only last. /proc/sys is bound read-only because a fresh /proc lets the uid that is root outside write it.
 */
export function bubblewrapArguments(profile: BubblewrapProfile): string[] {
  const { outside, env } = profile;
  return [
    ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    profile.disableUserns ? ["--disable-userns"] : [],
    ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--cap-drop", "ALL"],
    ["--die-with-parent", "--new-session", "--json-status-fd", String(BWRAP_FDS.status), "--sync-fd", String(BWRAP_FDS.pid1)],
    ["--ro-bind", "/usr", "/usr"],
    ["bin", "sbin", "lib", "lib32", "lib64", "libx32"].flatMap(systemDirectory),
    ETC.flatMap((name) => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
    ["--ro-bind-data", String(BWRAP_FDS.passwd), "/etc/passwd"],
    ["--ro-bind-data", String(BWRAP_FDS.group), "/etc/group"],
    ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"],
    ["--dev", "/dev", "--perms", "1777", "--size", String(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ["--dir", INSIDE_RUNTIME, ...profile.runtime.flatMap(([from, to]) => ["--ro-bind", from, to])],
    ["--bind", outside.tmp, INSIDE.tmp, "--bind", outside.home, INSIDE.home, "--bind", outside.workdir, INSIDE.workdir],
    ["--remount-ro", "/", "--chdir", profile.cwd],
    ["--clearenv", ...Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value])],
  ].flat();
}

/** /bin and its like are links into /usr on merged systems, and directories of their own on others. */
function systemDirectory(name: string): string[] {
  const path = `/${name}`;
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
}
