// SPDX-License-Identifier: Apache-2.0
import { Readable } from "node:stream";
import { createRoute, z } from "@hono/zod-openapi";
import { RollcallError } from "../../errors.ts";
import { away, json, problem } from "../answers.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import { requireScope } from "../guards.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";

const put = z.object({ artifact: z.string().openapi({ example: "sha256:2cf2..." }) }).openapi("PutFile");

/** Large inputs: put once under their sha256, then named by any activation. */
export function fileRoutes({ store, limits }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "put",
      path: "/files/{sha256}",
      summary: "Put a file, for activations to name as sandbox.files[].artifact",
      middleware: requireScope("enqueue"),
      request: {
        params: z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/, "64 hexadecimal digits") }),
        body: { content: { "application/octet-stream": { schema: z.string().openapi({ format: "binary" }) } } },
      },
      responses: {
        200: json(put, "it is in the store"),
        413: problem("too large (api.max_file_mb)"),
        422: problem("the bytes have another sha256; nothing was kept"),
        ...away,
      },
    }),
    async (context) => {
      const { sha256 } = context.req.valid("param");
      const { body } = context.req.raw;
      const bytes = body === null ? Readable.from([]) : Readable.fromWeb(body);
      try {
        if (Number(context.req.header("content-length") ?? 0) > limits.max_file_bytes) throw tooLarge(limits.max_file_bytes);
        await store.putInput(sha256, Readable.from(atMost(bytes, limits.max_file_bytes), { objectMode: false }));
      } catch (error) {
        bytes.destroy();
        if (error instanceof RollcallError && error.code === "sha256_differs") throw new ApiProblem(422, error.code, error.message);
        throw error;
      }
      return context.json({ artifact: `sha256:${sha256}` }, 200);
    },
  );
  return routes;
}

async function* atMost(body: Readable, most: number): AsyncGenerator<Buffer, undefined> {
  let bytes = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > most) throw tooLarge(most);
    yield part;
  }
  return undefined;
}

function tooLarge(most: number): ApiProblem {
  return new ApiProblem(413, "file_too_large", `a file may have ${most} bytes (api.max_file_mb)`);
}
