// SPDX-License-Identifier: Apache-2.0
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findOnPath, findRedisServer, installLine } from "../../src/redis/binary.ts";

let root: string;
beforeEach(async () => (root = await mkdtemp(join(tmpdir(), "rc-bin-"))));
afterEach(() => rm(root, { recursive: true }));

test("valkey-server serves where there is no redis-server", async () => {
  await writeFile(join(root, "valkey-server"), "#!/bin/sh\n", { mode: 0o755 });
  expect(await findRedisServer(["/nowhere", root].join(delimiter))).toBe(join(root, "valkey-server"));
});

test("directories, files that cannot be run, and the working directory do not count", async () => {
  await mkdir(join(root, "redis-server"));
  await writeFile(join(root, "plain"), "");
  await chmod(join(root, "plain"), 0o644);
  expect(await findOnPath(["redis-server", "plain"], [root, "", "."].join(delimiter))).toBeNull();
});

test.each([
  ["linux", 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n', "apt-get"],
  ["linux", 'ID=linuxmint\nID_LIKE="ubuntu debian"\n', "apt-get"],
  ["linux", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf"],
  ["linux", "ID=alpine\n", "apk add"],
  ["linux", "ID=arch\n", "pacman"],
  ["linux", 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper"],
  ["darwin", "", "brew install"],
  ["linux", "", "package is called"],
] as const)("the install line for %s %j uses %s", (platform, osRelease, expected) => {
  expect(installLine(platform, osRelease)).toContain(expected);
});
