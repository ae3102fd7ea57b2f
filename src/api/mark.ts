// SPDX-License-Identifier: Apache-2.0
import type { Caller } from "./api-keys.ts";

/** Who asked for it over HTTP, when and why: kept with what was stopped or paused. */
export function markOf({ name }: Caller, reason = ""): { by: string; at: string; reason: string } {
  return { by: name, at: new Date().toISOString(), reason };
}
