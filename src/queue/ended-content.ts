// SPDX-License-Identifier: Apache-2.0
import { contentRecord, differingRecords, type ContentRecord } from "../activation/content.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ActivationJobData } from "./jobs.ts";

// The queue forgets what has ended (retention, `rollcall clean`); an end stays in the store for good, and is found by its id. So
// the digest of what ended stays there too: else other content under the same id would be answered with that end.

type Store = Pick<ArtifactStore, "putDocument" | "readDocument">;

const documentName = (generation: number): string => `content.g${generation}`;

/** Keeps what an ended job's content was. Doing it twice changes nothing. */
export async function keepContent(store: Store, { activation, generation, content_digest }: ActivationJobData): Promise<void> {
  const record = contentRecord(content_digest, activation);
  await store.putDocument(activation.activation_id, documentName(generation), `${JSON.stringify(record)}\n`);
}

/**
 * How an activation that the queue does not know compares with the ends of its id: null = there is none, or an older one of which
 * nothing is known; no fields = the same content has ended; else the fields that differ from the latest.
 */
export async function differsFromEnded(store: Store, activationId: string, content: ContentRecord): Promise<string[] | null> {
  let fields: string[] | null = null;
  for (let generation = 0; ; generation++) {
    const document = await store.readDocument(activationId, documentName(generation));
    if (document === null) return fields;
    fields = differingRecords(JSON.parse(document.text) as ContentRecord, content);
    if (fields.length === 0) return fields;
  }
}
