// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isAlive, processIdentity } from "../host/process.ts";

const NAME = /^\.fetching\.(\d+)\.(\d*)\./u;

/** A directory for what is not whole yet; names the process that fills it. No version is called so. */
export function stagingName(): string {
  const own = processIdentity();
  return `.fetching.${own?.pid ?? process.pid}.${own?.start_time ?? ""}.${randomBytes(4).toString("hex")}`;
}

/** Removes what processes were fetching that live no more. */
export async function removeAbandoned(directory: string): Promise<void> {
  const own = processIdentity();
  for (const name of await readdir(directory)) {
    const match = NAME.exec(name);
    if (match === null || own === null) continue;
    const whose = { ...own, pid: Number(match[1]), start_time: match[2] ?? "" };
    if (!isAlive(whose)) await rm(join(directory, name), { recursive: true, force: true });
  }
}
