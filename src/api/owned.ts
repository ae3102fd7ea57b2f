// SPDX-License-Identifier: Apache-2.0
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { z } from "zod";
import type { ArtifactStore } from "../artifacts/types.ts";
import { RollcallError } from "../errors.ts";
import type { Queues } from "../queue/queues.ts";
import { findKnown } from "../resources/find-rollouts.ts";
import type { ApiEnv } from "./guards.ts";
import { ApiProblem } from "./problem.ts";

type Places = { queues: Queues; store: ArtifactStore };

const namesMany = z.object({ activation_ids: z.array(z.string()).max(10_000) });

/**
 * A key with an owner reaches what is of its own runs, and nothing else: whatever is of another run is as if it were not there, and what
 * is of all runs together (results queues, webhooks) it may not ask for.
 */
export function ownedOnly(places: Places) {
  return createMiddleware<ApiEnv>(async (context, next) => {
    const { owner } = context.var.caller;
    if (owner !== null) await requireOwn(context, owner, places);
    await next();
  });
}

/** Throws ApiProblem 403 for a key with an owner: what is asked for shows all runs. */
export const ofAllRuns = createMiddleware<ApiEnv>(async (context, next) => {
  if (context.var.caller.owner !== null) throw shared();
  await next();
});

async function requireOwn(context: Context<ApiEnv>, owner: string, places: Places): Promise<void> {
  const [what, id, action] = context.req.path
    .replace(/^\/v1\//, "")
    .split("/")
    .map(decoded);
  const { run_id, after } = context.req.query();
  if ([run_id, after].some((named) => named !== undefined && !named.startsWith(owner))) throw notOwn();
  if (what === "runs") {
    if (id !== undefined && !id.startsWith(owner)) throw notOwn();
  } else if (what === "activations" || what === "artifacts") {
    const many = what === "activations" && action === undefined && context.req.method === "POST" && (id === "state" || id === "cancel");
    if (id === undefined) return; // what is queued is looked at one by one
    const parsed = many ? namesMany.safeParse(await context.req.json().catch(() => null)) : null;
    await requireOwnActivations(places, many ? (parsed?.data?.activation_ids ?? []) : [id], owner);
  } else if (what !== "workers" && what !== "seal" && what !== "files") throw shared();
}

/** Throws ApiProblem 403 when one of them is there, in another run. */
export async function requireOwnActivations({ queues, store }: Places, ids: readonly string[], owner: string): Promise<void> {
  for (const { activation_id, run_id } of await findKnown(queues, ids)) {
    const runId = run_id ?? (await store.readCommit(activation_id).catch(unlessBadPath))?.run_id;
    if (runId !== undefined && !runId.startsWith(owner)) throw notOwn();
  }
}

function unlessBadPath(error: unknown): null {
  if (error instanceof RollcallError && error.code === "bad_path") return null;
  throw error;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function notOwn(): ApiProblem {
  return new ApiProblem(403, "not_own_run", "this key reaches only runs of its owner (runs=PREFIX in the keys file)");
}

function shared(): ApiProblem {
  return new ApiProblem(
    403,
    "not_own_run",
    "this shows or changes what is of all runs, which a key with an owner may not; ask for a run by its id",
  );
}
