// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import type { ActivationResult, Attempt } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { attemptFilePath, documentPath, earlierResultPath, resultPath, STORE_FILE } from "./layout.ts";
import type { ArtifactStore, CommittedBytes } from "./types.ts";

/** The few things a place must be able to do with small texts, so that a store can be built on it. */
export interface Documents {
  /** Durable when it returns, and only if nothing is there: of any number that try at once, one is told true. */
  create(path: string, text: string): Promise<boolean>;
  /** null when nothing is there. */
  read(path: string): Promise<string | null>;
  /** Removes a document that holds this text; nothing happens when it is gone or is another one. */
  remove(path: string, text: string): Promise<void>;
  /** For messages: where a path is. */
  nameOf(path: string): string;
  /** For programs, from anywhere: an absolute address, percent-encoded. */
  addressOf(path: string): string;
}

type EndsAndAttempts = "commit" | "readCommit" | "readCommitted" | "setAside" | "putAttempt" | "putDocument" | "readDocument";

/** Results and attempts of a store, kept as documents. All of them are created, none is ever changed. */
export function endsAndAttempts(documents: Documents): Pick<ArtifactStore, EndsAndAttempts> {
  const readResult = (path: string): Promise<ActivationResult | null> => readJson<ActivationResult>(documents, path);

  async function setAside(activationId: string, generation: number): Promise<void> {
    const path = resultPath(activationId);
    const text = await documents.read(path);
    // Else it was done before, or it is already the next one's.
    if (text === null || (parsed(text, documents.nameOf(path)) as ActivationResult).generation !== generation) return;
    await documents.create(earlierResultPath(activationId, generation), text);
    await documents.remove(path, text);
  }

  async function readCommitted(activationId: string, generation: number): Promise<CommittedBytes | null> {
    // The earlier name second: it may be set aside between the two looks, and never comes back.
    for (const path of [resultPath(activationId), earlierResultPath(activationId, generation)]) {
      const text = await documents.read(path);
      if (text !== null && (parsed(text, documents.nameOf(path)) as ActivationResult).generation === generation) {
        return { text, uri: documents.addressOf(path) };
      }
    }
    return null;
  }

  async function commit(result: ActivationResult): Promise<{ committed: boolean; result: ActivationResult }> {
    const { activation_id: activationId, generation } = result;
    const earlier = earlierResultPath(activationId, generation);
    const ended = await readResult(earlier);
    if (ended !== null) return { committed: false, result: ended };

    const text = asJson(result);
    if (await documents.create(resultPath(activationId), text)) {
      // A worker that lost its lock may get here after its generation was ended and set aside: its result counts no more.
      const setAsideMeanwhile = await readResult(earlier);
      if (setAsideMeanwhile === null) return { committed: true, result };
      await documents.remove(resultPath(activationId), text);
      return { committed: false, result: setAsideMeanwhile };
    }
    const standing = await readResult(resultPath(activationId));
    if (standing !== null && standing.generation >= generation) return { committed: false, result: standing };
    // An earlier generation's end was not set aside before this one began: do it now, then there is room.
    if (standing !== null) await setAside(activationId, standing.generation);
    return commit(result);
  }

  return {
    commit,
    setAside,
    readCommitted,
    readCommit: async (activationId) => readResult(resultPath(activationId)),
    putDocument: (activationId, name, text) => documents.create(documentPath(activationId, name), text),
    async readDocument(activationId, name) {
      const path = documentPath(activationId, name);
      const text = await documents.read(path);
      return text === null ? null : { text, uri: documents.addressOf(path) };
    },
    async putAttempt(activationId, attempt) {
      const path = attemptFilePath(activationId, attempt.attempt);
      const text = asJson(attempt);
      // Saving the same once more is fine: the first try may have failed after it had created it.
      if ((await documents.create(path, text)) || (await documents.read(path)) === text) return;
      const name = documents.nameOf(path);
      throw new RollcallError("attempt_exists", `${name} is there with other content: attempt numbers are never used twice`);
    },
  };
}

/** null when the attempt was killed before it could say how it ended. */
export function readAttempt(documents: Documents, activationId: string, attempt: number): Promise<Attempt | null> {
  return readJson<Attempt>(documents, attemptFilePath(activationId, attempt));
}

/** A new store's first document, with an id that no other store has. */
export function newStoreText(): string {
  return asJson({ schema: "rollcall.store/1", id: `store-${randomBytes(8).toString("hex")}` });
}

/** The id in a store's first document. Throws "store_damaged" when it is not one of ours. */
export function storeIdIn(text: string | null, documents: Documents): string {
  const value = text === null ? {} : parsed(text, documents.nameOf(STORE_FILE));
  if ("id" in value && typeof value.id === "string" && value.id !== "") return value.id;
  throw new RollcallError("store_damaged", `${documents.nameOf(STORE_FILE)} holds no store id: is this an artifact store of Rollcall?`);
}

function asJson(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

/**
 * A document that a store created whole, hence not validated again: a newer version's additional fields must not make an
 * end unreadable. null when there is none.
 */
async function readJson<T extends ActivationResult | Attempt>(documents: Documents, path: string): Promise<T | null> {
  const text = await documents.read(path);
  return text === null ? null : (parsed(text, documents.nameOf(path)) as T);
}

function parsed(text: string, name: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object") return value;
  } catch {
    // said below
  }
  throw new RollcallError("store_damaged", `${name} is not a JSON object: it was changed after it was written`);
}
