// SPDX-License-Identifier: Apache-2.0
import { constants } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { RollcallError } from "../errors.ts";

/** The first of these programs on a PATH, as an absolute path; null when there is none. */
export async function findOnPath(names: readonly string[], path: string): Promise<string | null> {
  for (const name of names) {
    for (const directory of path.split(delimiter)) {
      if (!isAbsolute(directory)) continue; // "" and "." mean the working directory: not where a server should come from
      const candidate = join(directory, name);
      if (await isExecutableFile(candidate)) return candidate;
    }
  }
  return null;
}

/** Absolute path of redis-server or valkey-server. @throws RollcallError redis_missing, with the install line for this system */
export async function findRedisServer(path: string): Promise<string> {
  const found = await findOnPath(["redis-server", "valkey-server"], path);
  if (found !== null) return found;
  const osRelease = await readFile("/etc/os-release", "utf8").catch(() => "");
  throw new RollcallError(
    "redis_missing",
    `no redis-server or valkey-server on PATH. Install one: ${installLine(process.platform, osRelease)}. Or set REDIS_URL to a Redis that already runs`,
  );
}

const INSTALL_LINES: readonly (readonly [systems: readonly string[], line: string])[] = [
  [["debian", "ubuntu"], "sudo apt-get install -y redis-server"],
  [["fedora", "rhel", "centos"], "sudo dnf install -y valkey || sudo dnf install -y redis"],
  [["alpine"], "sudo apk add redis"],
  [["arch"], "sudo pacman -S --noconfirm valkey"],
  [["suse", "opensuse"], "sudo zypper install -y valkey || sudo zypper install -y redis"],
];

/** The command that installs a Redis here, from the text of /etc/os-release (ID, then ID_LIKE in its order). */
export function installLine(platform: NodeJS.Platform, osRelease: string): string {
  if (platform === "darwin") return "brew install redis";
  const value = (key: string) => new RegExp(`^${key}="?([^"\n]*)"?$`, "m").exec(osRelease)?.[1] ?? "";
  for (const system of `${value("ID")} ${value("ID_LIKE")}`.split(" ")) {
    const entry = INSTALL_LINES.find(([systems]) => systems.includes(system));
    if (entry !== undefined) return entry[1];
  }
  return "the package is called redis-server, redis or valkey on most systems";
}

async function isExecutableFile(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
