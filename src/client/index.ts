// SPDX-License-Identifier: Apache-2.0

/** A typed client of the queue API: `import { createClient } from "rollcall/client"`. Needs nothing of Redis. */

export { ApiError } from "./api-error.ts";
export { createClient, type Client, type EnqueueOptions } from "./client.ts";
export type { ClientOptions } from "./request.ts";
export type { ResultsOptions, SessionEvent } from "./streams.ts";
