// SPDX-License-Identifier: Apache-2.0
import { lookup as dnsLookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { RollcallError } from "../errors.ts";
import { shownUrl } from "./reference.ts";

/** Hosts that rows may name although they are not public, or speak no https: `host` or `host:port`. */
export type AllowedHosts = readonly string[];

/**
 * Whether a row may have this URL fetched; null, or why not. Rows come from elsewhere: without this, one could have the
 * producer ask a server that only its own network reaches. Addresses behind names are judged by {@link publicLookup}. Pure.
 */
export function whyNotFetched(url: URL, allowed: AllowedHosts): string | null {
  if (url.username !== "" || url.password !== "") return "it holds credentials";
  if (isAllowed(url, allowed)) return null;
  if (url.protocol !== "https:") return "it is not https";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return isIP(host) !== 0 && !isPublic(host) ? "it is an address that is not public" : null;
}

/** Resolves names for `url`, and fails for one that leads to an address that is not public, unless its host is allowed. */
export function publicLookup(url: URL, allowed: AllowedHosts): LookupFunction {
  const anywhere = isAllowed(url, allowed);
  return (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, found) => {
      const addresses = error === null ? found : [];
      const usable = addresses.filter(({ address }) => anywhere || isPublic(address));
      const first = usable[0];
      if (error !== null) callback(error, "", 0);
      else if (first === undefined) callback(notPublic(url), "", 0);
      else if (options.all === true) (callback as unknown as (error: null, all: LookupAddress[]) => void)(null, usable);
      else callback(null, first.address, first.family);
    });
  };
}

function notPublic(url: URL): RollcallError {
  return new RollcallError("reference_refused", `${shownUrl(url)}: its host has only addresses that are not public`);
}

function isAllowed({ host, hostname }: URL, allowed: AllowedHosts): boolean {
  return allowed.includes(host) || allowed.includes(hostname);
}

/** `unicast` is what is left when loopback, private, link-local, shared, reserved and tunnelled ranges are taken out. */
function isPublic(address: string): boolean {
  return ipaddr.process(address).range() === "unicast";
}
