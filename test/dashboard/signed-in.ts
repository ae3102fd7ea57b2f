// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { hashApiKey, openApiKeys } from "../../src/api/api-keys.ts";
import type { QueueSettings } from "../../src/queue/settings.ts";
import { startApiRig, type ApiRig } from "../api/rig.ts";
import { tempDir } from "../support/temp-dir.ts";

export const SAME_ORIGIN = { "sec-fetch-site": "same-origin" };
export const KEYS = { read: "read-key", enqueue: "enqueue-key", admin: "admin-key" };

/** A server that knows the three keys, and the cookie of a browser that signed in with each. */
export async function startBoardRig(
  settings?: Partial<QueueSettings>,
): Promise<{ rig: ApiRig; cookies: Record<keyof typeof KEYS, string>; board: Board }> {
  const file = join(tempDir(), "keys");
  writeFileSync(
    file,
    Object.entries(KEYS)
      .map(([scope, key]) => `${scope} ${scope} ${hashApiKey(key)}\n`)
      .join(""),
  );
  const apiKeys = await openApiKeys({ single: null, file, onProblem: () => undefined });
  const rig = await startApiRig({ ports: { apiKeys }, ...(settings === undefined ? {} : { settings }) });
  const cookies = { read: "", enqueue: "", admin: "" };
  for (const scope of ["read", "enqueue", "admin"] as const) {
    const body = new URLSearchParams({ key: KEYS[scope] });
    const answer = await fetch(`${rig.api.origin}/sign-in`, { method: "POST", headers: SAME_ORIGIN, body, redirect: "manual" });
    cookies[scope] = answer.headers.get("set-cookie")!.split(";")[0]!;
  }
  const board: Board = (path, { method = "GET", ...headers } = {}) =>
    fetch(`${rig.api.origin}/dashboard${path}`, { method, headers: { cookie: cookies.read, ...headers }, redirect: "manual" });
  return { rig, cookies, board };
}

/** Asks a path below /dashboard as one who may read. */
export type Board = (path: string, headers?: Record<string, string>) => Promise<Response>;

export interface ShownJob {
  id: string;
  name: string;
  data: Record<string, any>; // oxlint-disable-line no-explicit-any -- tests say what they expect
  progress: unknown;
  failedReason: string;
  externalUrl: { href: string };
}

/** What the page of a queue gets. */
export async function jobsOf(board: Board, queue: string, query = ""): Promise<ShownJob[]> {
  const { queues } = (await (await board(`/api/queues?activeQueue=${queue}${query}`)).json()) as {
    queues: { name: string; jobs: ShownJob[] }[];
  };
  return queues.find(({ name }) => name === queue)!.jobs;
}

export async function jobOf(board: Board, queue: string, id: string): Promise<ShownJob> {
  return ((await (await board(`/api/queues/${queue}/${id}`)).json()) as { job: ShownJob }).job;
}
