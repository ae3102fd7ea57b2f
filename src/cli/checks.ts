// SPDX-License-Identifier: Apache-2.0
import { statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseSecretKeys } from "../activation/secret-keys.ts";
import { openArtifactStore } from "../artifacts/open-store.ts";
import type { CodexBinary } from "../codex/binary.ts";
import type { Environment } from "../config/load.ts";
import { secretVariable } from "../config/secret-variable.ts";
import type { Settings } from "../config/settings.ts";
import { messageOf } from "../errors.ts";
import { findRedisServer } from "../redis/binary.ts";
import { connectRedis, describeRedis, type RedisTarget } from "../redis/connect.ts";
import { checkRedis, requireRedisPassword } from "../redis/policy.ts";
import { codexesOf } from "./codexes.ts";
import { makeProvider } from "./provider.ts";

/** One line of `rollcall doctor`. `text` of a warn or fail says what to do. */
export interface CheckLine {
  state: "ok" | "warn" | "fail";
  what: string;
  text: string;
}

interface CheckInput {
  settings: Settings;
  env: Environment;
}

const GB = 1024 ** 3;

/** Looks at everything a run on this machine needs. Never throws: what throws becomes a line. */
export async function checkMachine(input: CheckInput): Promise<CheckLine[]> {
  const codex = await checkCodex(input);
  return [
    ...codex.lines,
    await guarded("sandbox", () => checkSandbox(input, codex.binary)),
    ...(await checkRedisServer(input).catch((error: unknown) => [failed("redis", error)])),
    await guarded("key", () => checkSecretKey(input)),
    await guarded("model", () => checkModelKey(input)),
    await guarded("store", () => checkStore(input)),
    await guarded("disk", () => checkDisk(input)),
  ];
}

async function checkCodex({ settings }: CheckInput): Promise<{ lines: CheckLine[]; binary: CodexBinary | null }> {
  try {
    const { codexes, leftOut } = await codexesOf(settings);
    const others = leftOut.map(({ version, why }): CheckLine => ({
      state: "warn",
      what: "codex",
      text: `${version} cannot be run: ${why}`,
    }));
    return { lines: [...codexes.map(codexLine), ...others], binary: codexes[0] };
  } catch (error) {
    return { lines: [failed("codex", error)], binary: null };
  }
}

function codexLine({ version, hostDir, entry, profile }: CodexBinary, index: number): CheckLine {
  const where = `${version} (${join(hostDir, entry)})${index === 0 ? "" : ", for sessions that name this version"}`;
  if (profile.version === version) return { state: "ok", what: "codex", text: where };
  const text = `${where}; it has no profile and is read as ${profile.version}: set codex_version to a version that has one for numbers to rely on`;
  return { state: "warn", what: "codex", text };
}

async function checkSandbox({ settings, env }: CheckInput, codex: CodexBinary | null): Promise<CheckLine> {
  const provider = await makeProvider(settings.sandbox.provider, { settings, env, vendoredBwrap: codex?.bwrap ?? null });
  const probe = await provider.probe();
  if (!probe.ok)
    return { state: "fail", what: "sandbox", text: probe.fix === undefined ? probe.summary : `${probe.summary}; ${probe.fix}` };
  const limits = probe.limits.length === 0 ? "no limits enforced" : `limits: ${probe.limits.join(", ")}`;
  const text = `${probe.summary}; ${limits}`;
  if (provider.name === "host") return { state: "warn", what: "sandbox", text: `${text}; for development only: use --sandbox bubblewrap` };
  return { state: "ok", what: "sandbox", text };
}

async function checkRedisServer({ settings, env }: CheckInput): Promise<CheckLine[]> {
  if (settings.redis_url === undefined) {
    const server = await findRedisServer(env["PATH"] ?? "");
    return [{ state: "ok", what: "redis", text: `embedded, from ${server}` }];
  }
  const target: RedisTarget = { kind: "url", url: settings.redis_url };
  await requireRedisPassword(target);
  const redis = connectRedis(target, { role: "command", onError: () => undefined });
  try {
    const found = await checkRedis(redis, target, { allowEviction: false });
    const text = `${describeRedis(target)}, version ${found.version ?? "unknown"}, ${found.eviction_policy ?? "unknown eviction policy"}`;
    return [
      { state: "ok", what: "redis", text },
      ...found.warnings.map((warning) => ({ state: "warn" as const, what: "redis", text: warning })),
    ];
  } finally {
    redis.disconnect();
  }
}

async function checkSecretKey({ settings }: CheckInput): Promise<CheckLine> {
  if (settings.redis_url === undefined) return { state: "ok", what: "key", text: "each embedded Redis has its own" };
  if (settings.secret_key !== undefined) {
    const [first, ...older] = parseSecretKeys(settings.secret_key);
    const more = older.length === 0 ? "" : `, ${older.map(({ id }) => id).join(", ")} only open`;
    return { state: "ok", what: "key", text: `key ${first.id} seals${more}` };
  }
  const text =
    "ROLLCALL_SECRET_KEY is not set, and REDIS_URL is: all producers and workers need the same key, e.g. from `openssl rand -base64 32`";
  return { state: "fail", what: "key", text };
}

async function checkModelKey({ settings, env }: CheckInput): Promise<CheckLine> {
  const name = settings.model.api_key_env;
  if ((await secretVariable(env, name)) !== undefined) return { state: "ok", what: "model", text: `${name} is set` };
  return { state: "warn", what: "model", text: `${name} is not set: export the model key (any value, if your model server asks for none)` };
}

/** Opens the store as a worker does, which also finds out whether commits in it would be safe. */
async function checkStore({ settings }: CheckInput): Promise<CheckLine> {
  const place = settings.artifacts;
  if (place !== undefined) {
    const { id } = await openArtifactStore(place, settings.s3);
    const server = place.startsWith("s3:") ? ` at ${settings.s3.endpoint ?? "Amazon S3"}, which keeps to conditional writes` : "";
    return { state: "ok", what: "store", text: `${place}${server} (${id})` };
  }
  if (settings.redis_url === undefined) return { state: "ok", what: "store", text: "artifacts/ in each output directory" };
  const text = "artifacts is not set, and REDIS_URL is: workers need the place that all share, s3://BUCKET/PREFIX or a directory";
  return { state: "warn", what: "store", text };
}

async function checkDisk({ settings }: CheckInput): Promise<CheckLine> {
  const places = await Promise.all(
    [".", settings.state_dir].map(async (path) => ({ path: resolve(path), free: await freeBytes(resolve(path)) })),
  );
  const tightest = places.toSorted((a, b) => a.free - b.free)[0]!;
  const text = `${(tightest.free / GB).toFixed(1)} GB free at ${tightest.path}`;
  if (tightest.free < GB)
    return { state: "fail", what: "disk", text: `${text}: make room (a session's evidence has about 1 MB, Codex 0.4 GB once)` };
  if (tightest.free < 5 * GB) return { state: "warn", what: "disk", text: `${text}: large batches need more` };
  return { state: "ok", what: "disk", text };
}

/** Of the file system that a path, or the nearest directory above it that exists, is on. */
async function freeBytes(path: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize;
  } catch (error) {
    if (dirname(path) === path) throw error;
    return freeBytes(dirname(path));
  }
}

async function guarded(what: string, check: () => Promise<CheckLine>): Promise<CheckLine> {
  return check().catch((error: unknown) => failed(what, error));
}

export function failed(what: string, error: unknown): CheckLine {
  return { state: "fail", what, text: messageOf(error) };
}
