// SPDX-License-Identifier: Apache-2.0
import type { SandboxSpec } from "./types.ts";
import { listOwnerRecords } from "./owner-record.ts";
import { endProcesses } from "./reap.ts";

/**
 * Ends what runs on this host of the activation's attempts before this one, whoever owns it: a worker that stands still, or is
 * cut off, has lost its claim and cannot end its own. For the holder of the claim, before it begins. Directories and records
 * stay for their owners. Only attempts of the same artifact store are meant: other deployments have activations of the same
 * name. Answers which sandboxes did not end.
 */
export async function endEarlierAttempts(stateDir: string, { activation_id, attempt, store_id }: SandboxSpec["owner"]): Promise<string[]> {
  const stayed: string[] = [];
  for (const record of await listOwnerRecords(stateDir)) {
    const { owner } = record;
    const isEarlier = owner.activation_id === activation_id && owner.attempt < attempt;
    if (!isEarlier || store_id === undefined || owner.store_id !== store_id) continue;
    if (!(await endProcesses(record))) stayed.push(record.id);
  }
  return stayed;
}
