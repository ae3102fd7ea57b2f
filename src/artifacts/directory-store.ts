// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, mkdir, opendir, readFile, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ActivationResult, Attempt } from "../contract/result.ts";
import { activationIdSchema } from "../contract/identity.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { createOnly } from "../host/files.ts";
import type { ArtifactStore } from "./types.ts";
import { writeArtifact } from "./write-artifact.ts";

/** No activation id begins with an underscore, so no activation's directory can be called like it. */
const STORE_FILE = "_store.json";
const RESULT_FILE = "result.json";
const ATTEMPT_FILE = "attempt.json";
const WITHHELD = "withheld";

/**
 * The `dir:` store: a directory, local or shared by all workers.
 *
 *     <root>/_store.json                         this store's id
 *     <root>/<activation_id>/result.json         THE end; result.g<k>.json: the ends of earlier generations
 *     <root>/<activation_id>/attempt-<n>/        attempt.json, evidence, outputs/, quarantine/, withheld/
 *
 * Ends are created by link(2): whoever comes second reads what stands. Deliverables, results and attempts are 0644 (the
 * umask narrows it); evidence and quarantined files are 0600, because redaction of free text has known limits.
 * Throws "store_unwritable" when nothing can be written under `root`, "store_damaged" when its files are not ours.
 */
export async function openDirectoryStore(root: string): Promise<ArtifactStore> {
  const id = await storeId(root);
  const activationDirectory = (activationId: string): string => join(root, checkedId(activationId));
  const attemptDirectory = (activationId: string, attempt: number): string => join(activationDirectory(activationId), `attempt-${attempt}`);
  const resultFile = (activationId: string): string => join(activationDirectory(activationId), RESULT_FILE);
  const earlierResult = (activationId: string, generation: number): string =>
    join(activationDirectory(activationId), `result.g${generation}.json`);

  async function setAside(activationId: string, generation: number): Promise<void> {
    const standing = await readJson<ActivationResult>(resultFile(activationId));
    if (standing === null || standing.generation !== generation) return; // done before, or already the next one's
    await linkOnce(resultFile(activationId), earlierResult(activationId, generation));
    await rm(resultFile(activationId));
  }

  async function commit(result: ActivationResult): Promise<{ committed: boolean; result: ActivationResult }> {
    const { activation_id: activationId, generation } = result;
    await mkdir(activationDirectory(activationId), { recursive: true });
    const ended = await readJson<ActivationResult>(earlierResult(activationId, generation));
    if (ended !== null) return { committed: false, result: ended };

    if (await createOnly(resultFile(activationId), asJson(result))) {
      // A worker that lost its lock may get here after its generation was ended and set aside: its result counts no more.
      const setAsideMeanwhile = await readJson<ActivationResult>(earlierResult(activationId, generation));
      if (setAsideMeanwhile === null) return { committed: true, result };
      await rm(resultFile(activationId));
      return { committed: false, result: setAsideMeanwhile };
    }
    const standing = await readJson<ActivationResult>(resultFile(activationId));
    if (standing !== null && standing.generation >= generation) return { committed: false, result: standing };
    // An earlier generation's end was not set aside before this one began: do it now, then there is room.
    if (standing !== null) await setAside(activationId, standing.generation);
    return commit(result);
  }

  return {
    id,
    commit,
    setAside,
    async put(activationId, attempt, path, body, facts) {
      checkArtifactPath(path);
      const target = join(attemptDirectory(activationId, attempt), path);
      const written = await writeArtifact(target, body, facts.kind === "evidence" || facts.quarantined ? 0o600 : 0o644);
      return {
        path,
        uri: uriOf(activationId, attempt, path),
        source: facts.source,
        kind: facts.kind,
        quarantined: facts.quarantined,
        ...written,
      };
    },
    open(activationId, attempt, path) {
      checkArtifactPath(path);
      return createReadStream(join(attemptDirectory(activationId, attempt), path));
    },
    async withhold(activationId, attempt, path) {
      checkArtifactPath(path);
      const withheld = `${WITHHELD}/${path}`;
      const target = join(attemptDirectory(activationId, attempt), withheld);
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await rename(join(attemptDirectory(activationId, attempt), path), target);
      return { path: withheld, uri: uriOf(activationId, attempt, withheld) };
    },
    async putAttempt(activationId, attempt) {
      const directory = attemptDirectory(activationId, attempt.attempt);
      await mkdir(directory, { recursive: true });
      const file = join(directory, ATTEMPT_FILE);
      const text = asJson(attempt);
      // Saving the same once more is fine: the first try may have failed after the link.
      if ((await createOnly(file, text)) || (await readFile(file, "utf8")) === text) return;
      throw new RollcallError("attempt_exists", `${file} is there with other content: attempt numbers are never used twice`);
    },
    async readAttempts(activationId) {
      const names = await namesIn(activationDirectory(activationId));
      const numbers = names.flatMap((name) => /^attempt-(\d+)$/.exec(name)?.slice(1).map(Number) ?? []).sort((a, b) => a - b);
      const attempts: Attempt[] = [];
      for (const number of numbers) {
        const attempt = await readJson<Attempt>(join(attemptDirectory(activationId, number), ATTEMPT_FILE));
        if (attempt !== null) attempts.push(attempt); // else it was killed before it could say how it ended
      }
      return attempts;
    },
    readCommit: (activationId) => readJson<ActivationResult>(resultFile(activationId)),
    async *listEnded() {
      for await (const entry of await opendir(root)) {
        if (entry.isDirectory() && activationIdSchema.safeParse(entry.name).success && (await exists(resultFile(entry.name)))) {
          yield entry.name;
        }
      }
    },
  };
}

/** Relative to the store, because output directories get moved and published. */
function uriOf(activationId: string, attempt: number, path: string): string {
  return `dir:${[activationId, `attempt-${attempt}`, ...path.split("/")].map(encodeURIComponent).join("/")}`;
}

/** Reads the store's id, or gives a new store one. Always writes something, so that a full or read-only disk shows here. */
async function storeId(root: string): Promise<string> {
  const file = join(root, STORE_FILE);
  try {
    await mkdir(root, { recursive: true });
    await createOnly(file, asJson({ schema: "rollcall.store/1", id: `store-${randomBytes(8).toString("hex")}` }));
  } catch (error) {
    throw new RollcallError(
      "store_unwritable",
      `cannot write to the artifact directory ${root}: ${messageOf(error)}. Choose another, or make it writable for this user`,
      { cause: error },
    );
  }
  const id = (await readJson<{ id?: unknown }>(file))?.id;
  if (typeof id === "string" && id !== "") return id;
  throw new RollcallError("store_damaged", `${file} holds no store id: is ${root} an artifact directory of Rollcall?`);
}

function checkedId(activationId: string): string {
  if (activationIdSchema.safeParse(activationId).success) return activationId;
  throw new RollcallError("bad_path", `${JSON.stringify(activationId.slice(0, 80))} is not an activation id`);
}

function checkArtifactPath(path: string): void {
  const safe = !path.includes("\0") && path.split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");
  if (!safe)
    throw new RollcallError("bad_path", `${JSON.stringify(path.slice(0, 200))} is not a relative path below an attempt's directory`);
}

function asJson(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

/**
 * A file that this store created whole, hence not validated again: a newer version's additional fields must not make an
 * end unreadable. null when there is none.
 */
async function readJson<T extends object>(file: string): Promise<T | null> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return null;
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object") return value as T;
  } catch {
    // said below
  }
  throw new RollcallError("store_damaged", `${file} is not a JSON object: it was changed after it was written`);
}

/** Gives a file a second name; nothing happens when it has that one already. */
async function linkOnce(file: string, name: string): Promise<void> {
  try {
    await link(file, name);
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return [];
    throw error;
  }
}

async function exists(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch {
    return false;
  }
}
