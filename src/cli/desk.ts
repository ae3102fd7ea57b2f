// SPDX-License-Identifier: Apache-2.0
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { openArtifactStore } from "../artifacts/open-store.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { createLogger } from "../logging.ts";
import type { Queues } from "../queue/queues.ts";
import { startSentinel } from "../queue/sentinel.ts";
import { LiveSecrets } from "../redact/index.ts";
import { OUTPUT_FILES, readManifest, type Manifest } from "../rollout/output-dir.ts";
import { reachRedis } from "./reach-redis.ts";
import { openQueuesOf, tracingOf } from "./station.ts";

/** What a command needs that looks at the queue, or changes what is in it, and runs nothing. */
export interface Desk {
  queues: Queues;
  /** --out, and its run. */
  out: string | null;
  run: Manifest | null;
  /** null: with REDIS_URL and no artifacts setting. Nothing that needs results can be done then. */
  store: ArtifactStore | null;
  /** null: with REDIS_URL and no ROLLCALL_SECRET_KEY. */
  keys: SecretKeys | null;
  close(): Promise<void>;
}

const SENTINEL_GRACE_MS = 10_000;

/** Throws RollcallError "run_missing". */
export async function manifestOf(out: string): Promise<Manifest> {
  const run = await readManifest(out);
  if (run === null) throw new RollcallError("run_missing", `${out} is not the output directory of a run: it has no manifest.json`);
  return run;
}

/** null: it is the directory of a server, which has artifacts of many. Throws RollcallError "run_missing". */
async function runIn(out: string): Promise<Manifest | null> {
  const serves = (await stat(join(out, OUTPUT_FILES.artifacts)).catch(() => null))?.isDirectory() === true;
  return serves ? readManifest(out) : manifestOf(out);
}

/** The run of --out. Throws RollcallError "id_missing", "run_missing". */
export async function runOf(out: string | undefined): Promise<string> {
  if (out === undefined) throw new RollcallError("id_missing", "name an activation or a run, or with --out the directory of a run");
  return (await manifestOf(resolve(out))).run_id;
}

/**
 * Reaches the queue from a process that is no part of a run: the embedded Redis of `out` is joined, or started where no run
 * is alive. `records`: this process also takes down ends, as far as it has the store. The caller closes it. Throws
 * RollcallError.
 */
export async function openDesk(options: { settings: Settings; env: Environment; out: string | null; records: boolean }): Promise<Desk> {
  const { settings, env, records } = options;
  const out = options.out === null ? null : resolve(options.out);
  const run = out === null ? null : await runIn(out);
  const log = createLogger({ level: settings.log_level ?? "warn", secrets: new LiveSecrets(), destination: process.stderr });

  const undo: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const tracing = await tracingOf(env, "rollcall-cli", log);
    undo.push(() => tracing.close());
    const place = { settings, env, outDir: out, ...(run === null ? {} : { runId: run.run_id }) };
    const redis = await reachRedis(place, log, (error) => log.error({ err: error }, "the embedded Redis is gone"));
    undo.push(redis.close);
    const artifacts = settings.artifacts ?? (out === null ? null : join(out, OUTPUT_FILES.artifacts));
    const store = artifacts === null ? null : await openArtifactStore(artifacts, settings.s3);
    const queues = openQueuesOf(redis.target, settings, log, { tracing });
    undo.push(() => queues.close());
    if (records && store !== null) {
      const sentinel = await startSentinel({ queues, store, log });
      undo.push(() => sentinel.close({ graceMs: SENTINEL_GRACE_MS }));
    }
    return { queues, out, run, store, keys: redis.keys, close };
  } catch (error) {
    await close();
    throw error;
  }
}
