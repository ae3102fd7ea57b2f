// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { messageOf, RollcallError } from "../errors.ts";
import { onDisk } from "../host/disk-full.ts";
import type { Cgroup, CgroupHost } from "./cgroup.ts";
import { makeSandboxDirectory, pathsIn, removeTree, type FileOwner } from "./directories.ts";
import { removeOwnerRecord, writeOwnerRecord, type OwnerRecord } from "./owner-record.ts";
import type { SandboxPaths, SandboxProviderName, SandboxSpec } from "./types.ts";
import type { UidLease } from "./uid-pool.ts";

/** What a sandbox occupies on the host: its owner record, its directory, its control group and, with a root worker, its uid. */
export interface Space {
  readonly directory: string;
  /** See {@link SANDBOX_MARK}. */
  readonly mark: string;
  readonly paths: SandboxPaths;
  readonly owner: FileOwner;
  /** Null where there are none. */
  readonly cgroup: Cgroup | null;
  /** Gives all back, the record last. The reason when something stayed; then the record and the uid stay as well. */
  close(): Promise<string | null>;
}

/** Throws RollcallError "sandbox_failed" or "disk_full" and leaves nothing behind. `lease` is given back by `close`, or on failure. */
export async function openSpace(options: {
  stateDir: string;
  /** Directory for sandboxes' directories; must exist. */
  parent: string;
  provider: SandboxProviderName;
  spec: SandboxSpec;
  lease: UidLease | null;
  cgroups?: CgroupHost | null;
}): Promise<Space> {
  const { stateDir, provider, spec, lease } = options;
  const mark = randomBytes(8).toString("hex");
  const name = `${spec.id}.${mark}`;
  const directory = join(options.parent, name);
  const cgroup = options.cgroups?.group(name, spec.limits) ?? null;
  const owner: FileOwner = lease === null ? null : { uid: lease.uid, gid: lease.uid };
  const uid: OwnerRecord["uid"] = lease === null ? null : { number: lease.uid, lock: lease.lock };
  const close = async (): Promise<string | null> => {
    const error = (await cgroup?.remove()) ?? (await removeTree(directory));
    if (error !== null) return error;
    await lease?.release();
    await removeOwnerRecord(stateDir, spec.id);
    return null;
  };

  try {
    checkSpec(spec);
    const cgroups = cgroup?.directories ?? [];
    const record = { id: spec.id, provider, owner: spec.owner, directory, mark, uid, cgroups };
    const recorded = await onDisk(stateDir, () => writeOwnerRecord(stateDir, record));
    if (!recorded) throw new RollcallError("sandbox_failed", `sandbox ${spec.id} exists already (or its dead owner was not reaped yet)`);
  } catch (error) {
    await lease?.release();
    throw sandboxFailed(spec.id, error);
  }
  try {
    await onDisk(options.parent, () => makeSandboxDirectory(directory, owner));
    await cgroup?.make();
  } catch (error) {
    await close(); // nobody else has a directory of this name
    throw sandboxFailed(spec.id, error);
  }
  return { directory, mark, paths: pathsIn(directory), owner, cgroup, close };
}

/** Any error as RollcallError "sandbox_failed". */
export function sandboxFailed(id: string, error: unknown): RollcallError {
  if (error instanceof RollcallError) return error;
  return new RollcallError("sandbox_failed", `sandbox ${id} could not be made: ${messageOf(error)}`, { cause: error });
}

function checkSpec({ id, runtime }: SandboxSpec): void {
  for (const name of [id, runtime.key]) {
    if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/u.test(name)) continue;
    throw new RollcallError(
      "sandbox_failed",
      `${JSON.stringify(name)} cannot be a file name: expected up to 200 letters, digits, dots, underscores or hyphens, beginning with a letter or digit`,
    );
  }
  for (const name of runtime.only ?? []) {
    if (!name.split("/").includes("..") && !name.startsWith("/")) continue;
    throw new RollcallError("sandbox_failed", `${JSON.stringify(name)} is outside of the runtime directory`);
  }
}
