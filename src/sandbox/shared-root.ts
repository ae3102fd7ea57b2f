// SPDX-License-Identifier: Apache-2.0
import { chmod, lstat, mkdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RollcallError } from "../errors.ts";
import { makeDirectory } from "../host/directory.ts";

/** Directories that all root workers of a host share; see {@link prepareSharedRoot}. */
export interface SharedRoot {
  sandboxes: string;
  runtimes: string;
  uids: string;
}

/**
 * Makes the place where a root worker keeps what its sandboxes' unprivileged uids must reach: the worker's own state
 * and a project under a 0700 home are out of reach for them. 0711: they may pass, not look around. Throws
 * "sandbox_failed" when another user could pass off something of his own there, or could not pass.
 */
export async function prepareSharedRoot(root: string): Promise<SharedRoot> {
  await makeDirectory(root, { what: "the place for root workers' sandboxes", fix: "put what is there elsewhere", mode: 0o711 });
  const real = await realpath(root);
  const made = { sandboxes: join(real, "sandboxes"), runtimes: join(real, "runtimes"), uids: join(real, "uids") };
  for (const path of [real, made.sandboxes, made.runtimes, made.uids]) {
    if (path !== real) await mkdir(path, { recursive: true });
    await refuseForeign(path);
    await chmod(path, path === made.uids ? 0o700 : 0o711); // mkdir's mode is cut by the umask
  }
  for (let path = dirname(real); ; path = dirname(path)) {
    await refuseForeign(path);
    if (((await lstat(path)).mode & 0o001) === 0) {
      throw new RollcallError(
        "sandbox_failed",
        `sandboxes cannot reach ${real}, since ${path} is closed to other users: choose another runtime root`,
      );
    }
    if (path === dirname(path)) return made;
  }
}

/** A directory is safe when only root can rename what is in it (sticky: only what is root's). */
async function refuseForeign(path: string): Promise<void> {
  const { uid, mode } = await lstat(path);
  if (uid === 0 && ((mode & 0o022) === 0 || (mode & 0o1000) !== 0)) return;
  throw new RollcallError(
    "sandbox_failed",
    `${path} can be changed by users other than root: choose another runtime root, or give it to root with mode 0711`,
  );
}
