// SPDX-License-Identifier: Apache-2.0
import type { LookupFunction } from "node:net";
import { RollcallError } from "../errors.ts";
import { hiddenLiteral, isAllowedHost, lookupPublic } from "../host/public-address.ts";
import { shownUrl } from "./reference.ts";

/** Hosts that rows may name although they are not public, or speak no https: `host` or `host:port`. */
export type AllowedHosts = readonly string[];

/** Whether a row may have this URL fetched; null, or why not. Addresses behind names are judged by {@link lookupFor}. Pure. */
export function whyNotFetched(url: URL, allowed: AllowedHosts): string | null {
  if (url.username !== "" || url.password !== "") return "it holds credentials";
  if (isAllowedHost(url, allowed)) return null;
  if (url.protocol !== "https:") return "it is not https";
  return hiddenLiteral(url) === null ? null : "it is an address that is not public";
}

/** Resolves names for `url`, and fails for one that leads to an address that is not public; undefined where its host is allowed. */
export function lookupFor(url: URL, allowed: AllowedHosts): LookupFunction | undefined {
  if (isAllowedHost(url, allowed)) return undefined;
  return lookupPublic(() => new RollcallError("reference_refused", `${shownUrl(url)}: its host leads to an address that is not public`));
}
