// SPDX-License-Identifier: Apache-2.0
import { OpenAPIHono } from "@hono/zod-openapi";
import type { ApiEnv } from "./guards.ts";
import { ApiProblem } from "./problem.ts";

export type Api = OpenAPIHono<ApiEnv>;

/** An app whose routes answer a request that does not fit their schemas with problem+json. */
export function newRoutes(): Api {
  return new OpenAPIHono<ApiEnv>({
    defaultHook(result) {
      if (result.success) return;
      const errors = result.error.issues.map(({ path, message, code }) => ({ code: `invalid_${code}`, path: path.join("."), message }));
      throw new ApiProblem(422, "request_invalid", `the ${result.target} of the request is not usable`, { errors });
    },
  });
}
