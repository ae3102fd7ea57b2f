// SPDX-License-Identifier: Apache-2.0
import { basename, dirname, join, resolve } from "node:path";
import { access, mkdir } from "node:fs/promises";
import { RollcallError } from "../errors.ts";
import { inspectBubblewrap, missingOptions, reachableBubblewrap, type BubblewrapBinary } from "./bubblewrap-binary.ts";
import { probeBubblewrap } from "./bubblewrap-probe.ts";
import { processesInBubblewrap, startBubblewrap } from "./bubblewrap-process.ts";
import { BWRAP_FDS, bubblewrapArguments, INSIDE, INSIDE_RUNTIME } from "./bubblewrap-profile.ts";
import { killGroups, processesInGroups, type CgroupHost } from "./cgroup.ts";
import { endEarlierAttempts } from "./end-earlier.ts";
import { findCgroups } from "./find-cgroups.ts";
import { OneSandbox } from "./one-sandbox.ts";
import { recordsDir } from "./owner-record.ts";
import { killUntilGone } from "./processes.ts";
import { limitArguments } from "./resource-limits.ts";
import { runtimePublisher } from "./runtime-copy.ts";
import { prepareSharedRoot, type SharedRoot } from "./shared-root.ts";
import { openSpace, sandboxFailed, type Space } from "./space.ts";
import type { Sandbox, SandboxProvider, SandboxRuntime, SandboxSpec } from "./types.ts";
import { DEFAULT_UID_RANGE, leaseUid, type UidRange } from "./uid-pool.ts";

const END_MS = 5000;

/** Where root workers keep what they share, unless told otherwise. */
export const DEFAULT_RUNTIME_ROOT = "/var/lib/rollcall";

export interface BubblewrapOptions {
  /** The worker's own directory, for owner records. */
  stateDir: string;
  /** The bwrap to use, from {@link findBubblewrap}; null: none was found, which probe() then explains. */
  bwrapPath: string | null;
  /**
   * Only for a root worker: directory shared by all of them, every parent of it open to other users; holds the
   * runtimes, the uid locks and, since stateDir may lie under a closed home, the sandboxes' directories.
   */
  runtimeRoot?: string;
  uidRange?: UidRange;
}

/** What a provider finds out once, at its first sandbox. */
export interface BubblewrapHost {
  binary: BubblewrapBinary;
  /** Path of the bwrap that is started. */
  command: string;
  /** Null = the worker is not root: one uid for all, isolated by mount and pid namespaces only. */
  shared: SharedRoot | null;
  disableUserns: boolean;
  /** Where sandboxes find this runtime on the host. */
  publish: (runtime: SandboxRuntime) => Promise<string>;
  /** Null = memory and processors cannot be limited here, and usage is sampled. */
  cgroups: CgroupHost | null;
}

/**
 * Sandboxes of Linux namespaces, by bubblewrap. Only from the main thread of a process: a sandbox dies with the
 * THREAD that started it. The network is the host's, with its loopback and its abstract sockets.
 */
export function createBubblewrapProvider(given: BubblewrapOptions): SandboxProvider {
  const options = { ...given, stateDir: resolve(given.stateDir) }; // bwrap has another working directory
  let host: Promise<BubblewrapHost> | null = null;
  const prepare = async (): Promise<BubblewrapHost> => {
    if (host !== null && !(await isStillThere(await host))) host = null;
    host ??= prepareHost(options).catch((error: unknown) => {
      host = null; // may be mended meanwhile
      throw error;
    });
    return host;
  };
  const create = async (spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> => {
    try {
      return await createSandbox(await unlessAborted(prepare(), signal), options, spec, signal);
    } catch (error) {
      throw sandboxFailed(spec.id, error);
    }
  };
  return {
    name: "bubblewrap",
    create,
    endEarlier: (owner) => endEarlierAttempts(options.stateDir, owner),
    probe: () => probeBubblewrap(prepare, create),
  };
}

/** Somebody may remove the shared directories, or bwrap, while the worker lives. */
async function isStillThere({ command, shared }: BubblewrapHost): Promise<boolean> {
  const places = [command, ...(shared === null ? [] : [shared.sandboxes, shared.runtimes, shared.uids])];
  const found = await Promise.all(
    places.map((path) =>
      access(path).then(
        () => true,
        () => false,
      ),
    ),
  );
  return !found.includes(false);
}

async function prepareHost({ bwrapPath, runtimeRoot = DEFAULT_RUNTIME_ROOT }: BubblewrapOptions): Promise<BubblewrapHost> {
  if (bwrapPath === null)
    throw new RollcallError("sandbox_failed", "no usable bubblewrap was found: install the package bubblewrap (0.6 or newer)");
  const binary = await inspectBubblewrap(bwrapPath);
  const missing = missingOptions(binary);
  if (missing.length > 0)
    throw new RollcallError("sandbox_failed", `${bwrapPath} (${binary.version}) is too old: it lacks ${missing.join(", ")}`);
  const shared = process.getuid?.() === 0 ? await prepareSharedRoot(runtimeRoot) : null;
  const command = shared === null ? resolve(bwrapPath) : await reachableBubblewrap(bwrapPath, shared.runtimes);
  const publish = shared === null ? ({ hostDir }: SandboxRuntime) => Promise.resolve(resolve(hostDir)) : runtimePublisher(shared.runtimes);
  return { binary, command, shared, disableUserns: binary.options.has("--disable-userns"), publish, cgroups: await findCgroups() };
}

async function createSandbox(
  host: BubblewrapHost,
  options: BubblewrapOptions,
  spec: SandboxSpec,
  signal: AbortSignal | undefined,
): Promise<Sandbox> {
  const runtime = await unlessAborted(runtimeBinds(spec.runtime, host.publish), signal); // nothing of the sandbox itself yet
  const { stateDir, uidRange = DEFAULT_UID_RANGE } = options;
  const parent = host.shared?.sandboxes ?? recordsDir(stateDir);
  if (host.shared === null) await mkdir(parent, { recursive: true, mode: 0o700 });
  const lease = host.shared === null ? null : await leaseUid(host.shared.uids, uidRange);
  const space = await openSpace({ stateDir, parent, provider: "bubblewrap", spec, lease, cgroups: host.cgroups });
  try {
    signal?.throwIfAborted();
    const limits = limitArguments(spec.limits, lease !== null);
    return new OneSandbox({
      id: spec.id,
      provider: "bubblewrap",
      space,
      inside: INSIDE,
      runtimeDir: INSIDE_RUNTIME,
      launch: (argv, { env, cwd, beginWithinMs }, onStart) =>
        startBubblewrap({
          words: [...limits, `./${basename(host.command)}`, "--args", String(BWRAP_FDS.args), "--", ...argv],
          cwd: dirname(host.command), // so that bwrap's path is not among its words, which can be read inside
          options: bubblewrapArguments({ outside: space.paths, runtime, env, cwd, disableUserns: host.disableUserns }),
          user: space.owner,
          mark: space.mark,
          joinGroup: async (pid) => space.cgroup?.join(pid),
          onStart,
          beginWithinMs: beginWithinMs ?? null,
        }),
      endStragglers: () => endStragglers(space),
    });
  } catch (error) {
    await space.close();
    throw error;
  }
}

/** Pairs of outside and inside path. */
async function runtimeBinds(runtime: SandboxRuntime, publish: BubblewrapHost["publish"]): Promise<[string, string][]> {
  if (runtime.only?.length === 0) return [];
  const from = await publish(runtime);
  if (runtime.only === undefined) return [[from, INSIDE_RUNTIME]];
  return runtime.only.map((name) => [join(from, name), join(INSIDE_RUNTIME, name)]);
}

/** Rejects with the signal's reason as soon as it is aborted; `work` goes on by itself. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  work.catch(() => undefined);
  signal.throwIfAborted();
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

async function endStragglers({ owner, mark, directory, cgroup }: Space): Promise<string | null> {
  const groups = cgroup?.directories ?? [];
  killGroups(groups);
  const gone = await killUntilGone(() => [...processesInBubblewrap(mark, owner?.uid ?? null), ...processesInGroups(groups)], END_MS);
  return gone ? null : `processes of the sandbox in ${directory} did not end`;
}
