// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { shortSecretWarnings } from "../activation/short-secrets.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { withDerivedIds } from "../contract/derive.ts";
import { hasMoreValues } from "../contract/count-values.ts";
import { newRunId } from "../contract/identity.ts";
import { admit, type Refusal } from "../contract/refusals.ts";
import { enqueueAgain } from "../queue/enqueue-again.ts";
import { compareActivations, enqueueActivations } from "../queue/enqueue.ts";
import { findActivations } from "../queue/find-activation.ts";
import type { Queues } from "../queue/queues.ts";
import type { EnqueueReply } from "./messages.ts";
import type { ApiPorts } from "./ports.ts";
import { requireOwnActivations } from "./owned.ts";
import { ApiProblem, refusedProblem } from "./problem.ts";
import { withServerDefaults } from "./server-defaults.ts";

const MOST = 1_000;
/** Of all of them together: nobody else is served while they are looked at. */
const MOST_VALUES = 300_000;

type Entry = { accepted: true; activation: SessionActivation } | { accepted: false; raw: unknown; refusals: Refusal[] };

/**
 * What POST /v1/activations does with its body. Without `partial` it is all or nothing: nothing is queued when one is
 * refused or conflicts with what is there. `again`: those that have ended get a new generation. One that names no run, where
 * `runId` is null too, belongs to the run that its id is in already; else to `newRun`, or to one of the request. Throws ApiProblem.
 */
export async function enqueueRequest(
  { queues, store, keys, policy, defaults }: ApiPorts,
  body: unknown,
  {
    partial,
    again,
    runId,
    newRun,
    owner,
  }: { partial: boolean; again: boolean; runId: string | null; newRun: string | null; owner: string | null },
): Promise<EnqueueReply> {
  const several = Array.isArray(body);
  const raws: unknown[] = several ? body : [body];
  if (raws.length === 0 || raws.length > MOST)
    throw new ApiProblem(422, "request_invalid", `${raws.length} activations in one request; send 1 to ${MOST}`);
  if (hasMoreValues(raws, MOST_VALUES))
    throw new ApiProblem(
      413,
      "request_too_large",
      `more than ${MOST_VALUES} values (fields and elements, at all depths) in one request: send fewer activations at once`,
    );
  const unassigned = runId === null ? raws.flatMap((raw) => (idsIn(raw).run_id === null ? (idsIn(raw).activation_id ?? []) : [])) : [];
  const there = await runsOf(queues, unassigned);
  const otherwise = runId ?? `${owner ?? ""}${newRun ?? runForIds(unassigned)}`;
  const entries = raws.map((raw): Entry => {
    const complete = isRecord(raw) && defaults !== undefined ? withServerDefaults(raw, defaults) : raw;
    const run = there.get(idsIn(raw).activation_id ?? "") ?? otherwise;
    const admission = admit(isRecord(complete) ? withDerivedIds(complete, run) : complete, policy);
    return admission.accepted ? admission : { ...admission, raw };
  });
  if (owner !== null) {
    const wanted = accepted(entries);
    if (wanted.some(({ run_id }) => !run_id.startsWith(owner)))
      throw new ApiProblem(403, "not_own_run", `runs of this key begin with ${owner}; nothing was queued`);
    await requireOwnActivations(
      { queues, store },
      wanted.map(({ activation_id }) => activation_id),
      owner,
    );
  }
  if (!partial) {
    const refused = entries.flatMap((entry, index) =>
      entry.accepted ? [] : refusedProblem(entry.refusals, several ? `[${index}].` : "").errors!,
    );
    if (refused.length > 0)
      throw new ApiProblem(422, "activation_refused", "what is asked for cannot be run; nothing was queued", { errors: refused });
    const ids = accepted(entries).map(({ activation_id }) => activation_id);
    const twice = ids.toSorted().find((id, index, sorted) => id === sorted[index + 1]);
    if (twice !== undefined) throw new ApiProblem(422, "id_twice", `the id ${twice} is in the request twice; nothing was queued`);
    const conflicts = (await compareActivations(queues, accepted(entries), { keys, store })).filter(
      ({ outcome }) => outcome === "conflict",
    );
    if (conflicts.length > 0) {
      const errors = conflicts.flatMap(({ activation_id, fields = [] }) =>
        fields.map((field) => ({ code: "differs", path: field, message: `${activation_id} is there with another ${field}` })),
      );
      throw new ApiProblem(409, "activation_conflict", `${conflicts.length} of the ids are there with other content; nothing was queued`, {
        errors,
      });
    }
  }
  const activations = accepted(entries);
  const queued = again ? enqueueAgain(queues, store, activations, { keys }) : enqueueActivations(queues, activations, { keys, store });
  const answers = (await queued).values();
  return {
    activations: entries.map((entry) => {
      if (!entry.accepted) return { ...idsIn(entry.raw), outcome: "refused" as const, refusals: entry.refusals };
      const { fields, ...answer } = answers.next().value!;
      const warnings = shortSecretWarnings(entry.activation);
      const worthAWord = warnings.length === 0 ? {} : { warnings };
      return { ...answer, run_id: entry.activation.run_id, ...worthAWord, ...(fields === undefined ? {} : { fields: [...fields] }) };
    }),
  };
}

/** The runs of those ids that are known. */
async function runsOf(queues: Queues, ids: readonly string[]): Promise<Map<string, string>> {
  const found = await findActivations(queues, ids);
  return new Map(found.flatMap(({ activation_id, run_id }) => (run_id === null ? [] : [[activation_id, run_id]])));
}

/** The same for the same ids: two requests at once, neither of which finds the other's, mean one run. */
function runForIds(ids: readonly string[]): string {
  if (ids.length === 0) return newRunId();
  return `ids-${createHash("sha256").update(JSON.stringify(ids)).digest("hex").slice(0, 24)}`;
}

function accepted(entries: readonly Entry[]): SessionActivation[] {
  return entries.flatMap((entry) => (entry.accepted ? [entry.activation] : []));
}

function idsIn(raw: unknown): { activation_id: string | null; run_id: string | null } {
  const text = (name: string): string | null => (isRecord(raw) && typeof raw[name] === "string" ? raw[name] : null);
  return { activation_id: text("activation_id"), run_id: text("run_id") };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
