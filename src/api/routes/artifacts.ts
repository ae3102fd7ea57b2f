// SPDX-License-Identifier: Apache-2.0
import { Readable } from "node:stream";
import { createRoute, z } from "@hono/zod-openapi";
import { RollcallError } from "../../errors.ts";
import { problem } from "../answers.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import { rangeOf } from "../byte-range.ts";
import { requireScope } from "../guards.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";

/** Everything else is bytes: what a model wrote is never shown as a page of this server. */
const TYPES: Record<string, string> = {
  json: "application/json",
  jsonl: "application/x-ndjson",
  txt: "text/plain; charset=utf-8",
  md: "text/plain; charset=utf-8",
  log: "text/plain; charset=utf-8",
  toml: "text/plain; charset=utf-8",
  csv: "text/csv; charset=utf-8",
  pdf: "application/pdf",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  zip: "application/zip",
};
/** Where files are put in which a secret was found, should no result tell of them; `quarantine~2` is one, too. */
const SET_APART = /^(quarantine|withheld)/i;

/** The files of attempts, evidence and deliverables alike, as a result's `artifacts` names them. */
export function artifactRoutes({ store }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openAPIRegistry.registerPath(
    createRoute({
      method: "get",
      path: "/artifacts/{activation_id}/{attempt}/{path}",
      summary: "One file of an attempt; its path may have slashes. One byte range may be asked for",
      request: {
        params: z.object({ activation_id: z.string(), attempt: z.string().regex(/^\d{1,9}$/), path: z.string() }),
        headers: z.object({ range: z.string().optional() }),
      },
      responses: {
        200: { description: "its bytes", content: { "application/octet-stream": { schema: BYTES } } },
        206: { description: "those asked for", content: { "application/octet-stream": { schema: BYTES } } },
        403: problem("a secret was found in it: admins only"),
        404: problem("there is no such file"),
        416: problem("it is not that long"),
      },
    }),
  );
  // [^]: names may have line breaks.
  routes.get("/artifacts/:activation_id/:attempt{[0-9]+}/:path{[^]+}", requireScope("read"), async (context) => {
    const { activation_id, attempt, path } = context.req.param();
    if (!context.var.caller.may("admin") && (await isQuarantined(store, activation_id, Number(attempt), path)))
      throw new ApiProblem(403, "scope_missing", "a form of a secret was found in this file: it needs the scope admin");
    const size = await sizeOf(store, activation_id, Number(attempt), path);
    if (size === null) throw new ApiProblem(404, "artifact_unknown", "there is no such file; the result's artifacts name what there is");
    // Without a validator to compare, a conditional range is the whole.
    const range = context.req.header("if-range") === undefined ? rangeOf(context.req.header("range"), size) : null;
    if (range === "unsatisfiable")
      throw new ApiProblem(416, "range_not_satisfiable", `the file has ${size} bytes`, { headers: { "content-range": `bytes */${size}` } });
    const headers = {
      "content-type": TYPES[path.split(".").at(-1)!.toLowerCase()] ?? "application/octet-stream",
      "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(path.split("/").at(-1)!).replace(/['()*]/g, hex)}`,
      "content-length": String(range === null ? size : range.end - range.start + 1),
      "accept-ranges": "bytes",
      "cache-control": "private, no-cache",
      ...(range === null ? {} : { "content-range": `bytes ${range.start}-${range.end}/${size}` }),
    };
    if (size === 0) return context.newResponse(null, 200, headers);
    const bytes = store.open(activation_id, Number(attempt), path, range ?? { start: 0, end: size - 1 }); // not what is added meanwhile
    return context.newResponse(Readable.toWeb(bytes) as ReadableStream, range === null ? 200 : 206, headers);
  });
  return routes;
}

const BYTES = z.string().openapi({ format: "binary" });

/** By the flag of the artifact itself, wherever it lies. */
async function isQuarantined(store: ApiPorts["store"], activationId: string, attempt: number, path: string): Promise<boolean> {
  if (SET_APART.test(path)) return true;
  const result = await unlessBadPath(store.readCommit(activationId));
  if (result?.episode_id.attempt !== attempt) return false;
  return result.artifacts.some((artifact) => artifact.path === path && artifact.quarantined);
}

/** null also for what cannot be the place of an artifact. */
async function sizeOf(store: ApiPorts["store"], activationId: string, attempt: number, path: string): Promise<number | null> {
  return unlessBadPath(store.size(activationId, attempt, path));
}

async function unlessBadPath<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof RollcallError && error.code === "bad_path") return null;
    throw error;
  }
}

function hex(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}
