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

/**
 * Results and attempts of a store, kept as documents. All of them are created, none is ever changed. One that is torn (a disk that lost
 * its end, an edit by hand) counts as not there, so that it holds up nothing but itself; it is put aside when its successor comes.
 */
export function endsAndAttempts(documents: Documents): Pick<ArtifactStore, EndsAndAttempts> {
  async function readResult(path: string): Promise<ActivationResult | null> {
    const text = await documents.read(path);
    return text === null ? null : resultIn(text);
  }

  /** So that its successor can be created; what it held may still tell somebody something. */
  async function putDamagedAside(path: string, field: "generation" | "attempt"): Promise<void> {
    const text = await documents.read(path);
    if (text === null || recordIn(text, field) !== null) return;
    await documents.create(`${path}.damaged`, text);
    await documents.remove(path, text);
  }

  async function setAside(activationId: string, generation: number): Promise<void> {
    const path = resultPath(activationId);
    const text = await documents.read(path);
    // Else it was done before, or it is already the next one's.
    if (text === null || resultIn(text)?.generation !== generation) return;
    await documents.create(earlierResultPath(activationId, generation), text);
    await documents.remove(path, text);
  }

  async function readCommitted(activationId: string, generation: number): Promise<CommittedBytes | null> {
    // The earlier name second: it may be set aside between the two looks, and never comes back.
    for (const path of [resultPath(activationId), earlierResultPath(activationId, generation)]) {
      const text = await documents.read(path);
      if (text !== null && resultIn(text)?.generation === generation) return { text, uri: documents.addressOf(path) };
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
    else await putDamagedAside(resultPath(activationId), "generation");
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
      await putDamagedAside(path, "attempt");
      if ((await documents.create(path, text)) || (await documents.read(path)) === text) return;
      const name = documents.nameOf(path);
      throw new RollcallError("attempt_exists", `${name} is there with other content: attempt numbers are never used twice`);
    },
  };
}

/** null when the attempt was killed before it could say how it ended, or what it said is torn. */
export async function readAttempt(documents: Documents, activationId: string, attempt: number): Promise<Attempt | null> {
  const text = await documents.read(attemptFilePath(activationId, attempt));
  return text === null ? null : (recordIn(text, "attempt") as Attempt | null);
}

/** A new store's first document, with an id that no other store has. */
export function newStoreText(): string {
  return asJson({ schema: "rollcall.store/1", id: `store-${randomBytes(8).toString("hex")}` });
}

/** The id in a store's first document. Throws "store_damaged" when it is not one of ours. */
export function storeIdIn(text: string | null, documents: Documents): string {
  const value = text === null ? null : (recordIn(text, "id") as { id: unknown } | null);
  if (typeof value?.id === "string" && value.id !== "") return value.id;
  throw new RollcallError("store_damaged", `${documents.nameOf(STORE_FILE)} holds no store id: is this an artifact store of Rollcall?`);
}

function asJson(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function resultIn(text: string): ActivationResult | null {
  return recordIn(text, "generation") as ActivationResult | null;
}

/**
 * What a store created whole, hence not validated again: a newer version's additional fields must not make an end unreadable.
 * null: it is torn.
 */
function recordIn(text: string, field: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && field in value ? value : null;
  } catch {
    return null;
  }
}
