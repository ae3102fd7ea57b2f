// SPDX-License-Identifier: Apache-2.0
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";

/** read: look at anything. enqueue: that, and add, cancel, retry and take results. admin: everything. */
const SCOPES = ["read", "enqueue", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

const INCLUDES: Record<Scope, readonly Scope[]> = { read: ["read"], enqueue: ["read", "enqueue"], admin: SCOPES };

/** Whoever sent a request. */
export interface Caller {
  /** Of the key; for logs and limits. */
  name: string;
  /** Beginning of the ids of all runs that it reaches; null = all runs. */
  owner: string | null;
  may(scope: Scope): boolean;
}

interface StoredKey {
  name: string;
  scopes: Scope[];
  hash: Buffer;
  owner: string | null;
}

export interface ApiKeys {
  /** The owner of a key; null = nobody's. */
  find(key: string): Promise<Caller | null>;
  /** The owner of the key whose sha256 `isIts` knows; every key is shown to it. */
  findByDigest(isIts: (digest: Buffer) => boolean): Promise<Caller | null>;
}

const MAX_FILE_BYTES = 1024 * 1024;
/** So long a change of the file may go unseen. */
const LOOK_MS = 1_000;

const line = z.tuple([
  z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, "a name of letters, digits, _ . -"),
  z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(SCOPES)).min(1)),
  z.string().regex(/^sha256:[0-9a-f]{64}$/, "sha256: and 64 hex digits"),
  z
    .string()
    .regex(/^runs=[A-Za-z0-9_.:-]{1,64}$/, "runs=PREFIX, with which the ids of its runs begin")
    .transform((text) => text.slice("runs=".length))
    .optional(),
]);

export function hashApiKey(key: string): string {
  return `sha256:${digestOfKey(key).toString("hex")}`;
}

export function digestOfKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** 256 bits, so that a plain hash of it is enough at rest. */
export function newApiKey(): string {
  return `rck_${randomBytes(32).toString("base64url")}`;
}

/**
 * The keys of a deployment: `single` (full rights, from the environment) and a file of lines `NAME SCOPE[,SCOPE] sha256:HEX [runs=PREFIX]`,
 * where # begins a comment. A changed file counts within a second; one that cannot be read any more leaves the keys as they
 * were, and `onProblem` is told. Throws RollcallError "api_keys_invalid" when it cannot be read at the start.
 */
export async function openApiKeys(options: {
  single: string | null;
  file: string | null;
  onProblem: (error: RollcallError) => void;
}): Promise<ApiKeys> {
  const { single, file, onProblem } = options;
  const own: StoredKey[] = single === null ? [] : [{ name: "default", scopes: ["admin"], hash: digestOfKey(single), owner: null }];
  let state = file === null ? { stamp: "", keys: [] as StoredKey[] } : await readKeys(file);
  let looked = performance.now();

  async function refresh(path: string): Promise<void> {
    if (performance.now() - looked < LOOK_MS) return;
    looked = performance.now();
    try {
      if ((await stampOf(path)) !== state.stamp) state = await readKeys(path);
    } catch (error) {
      onProblem(error instanceof RollcallError ? error : unreadable(path, error));
    }
  }

  async function findByDigest(isIts: (digest: Buffer) => boolean): Promise<Caller | null> {
    if (file !== null) await refresh(file);
    // Every key is compared, so that the time it takes does not tell which one it was.
    let found: StoredKey | null = null;
    for (const each of [...own, ...state.keys]) if (isIts(each.hash)) found ??= each;
    if (found === null) return null;
    const { name, scopes, owner } = found;
    return { name, owner, may: (scope) => scopes.some((has) => INCLUDES[has].includes(scope)) };
  }

  return {
    async find(key) {
      const hash = digestOfKey(key);
      return findByDigest((digest) => timingSafeEqual(digest, hash));
    },
    findByDigest,
  };
}

async function readKeys(file: string): Promise<{ stamp: string; keys: StoredKey[] }> {
  const stamp = await stampOf(file);
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw unreadable(file, error);
  });
  const keys = text.split("\n").flatMap((raw, index) => {
    const words = raw.replace(/#.*/, "").trim();
    if (words === "") return [];
    const parsed = line.safeParse(words.split(/\s+/));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      // Not the line itself: it may hold a key in clear.
      throw new RollcallError(
        "api_keys_invalid",
        `${file}, line ${index + 1}: expected NAME SCOPE[,SCOPE] sha256:HEX [runs=PREFIX] (scopes: ${SCOPES.join(", ")}): ${issue?.message ?? ""}`,
      );
    }
    const [name, scopes, hash, owner = null] = parsed.data;
    return [{ name, scopes, hash: Buffer.from(hash.slice("sha256:".length), "hex"), owner }];
  });
  const names = keys.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new RollcallError("api_keys_invalid", `${file}: the name ${twice} is there twice`);
  return { stamp, keys };
}

async function stampOf(file: string): Promise<string> {
  const { mtimeMs, size, ino } = await stat(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
  if (size > MAX_FILE_BYTES) throw new RollcallError("api_keys_invalid", `${file} has ${size} bytes; at most ${MAX_FILE_BYTES}`);
  return `${mtimeMs} ${size} ${ino}`;
}

function unreadable(file: string, error: unknown): RollcallError {
  const reason = hasErrno(error, "ENOENT") ? "there is no such file" : messageOf(error);
  return new RollcallError("api_keys_invalid", `cannot read the API keys in ${file}: ${reason}`, { cause: error });
}
