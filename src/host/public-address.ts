// SPDX-License-Identifier: Apache-2.0
import { lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";

// What others may have us connect to: without these, a row or a webhook could have us ask a server that only our network reaches.

/** Whether an address is one of the public Internet: no private, loopback, link-local (169.254.169.254), shared, mapped or reserved one. Pure. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  return ipaddr.process(address).range() === "unicast"; // process: ::ffff:10.0.0.1 is 10.0.0.1
}

/**
 * Whether this list of hosts (`NAME`, `ADDRESS`, each also with `:PORT`) allows what it leads to, wherever that is. Pure.
 * @param url with the scheme http or https
 */
export function isAllowedHost(url: URL, allowed: readonly string[]): boolean {
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  return allowed.some((entry) => [literal(url), url.hostname, `${url.hostname}:${port}`].includes(entry.toLowerCase()));
}

/** The address that stands in a URL instead of a name, when it is none of the public Internet; else null. Pure. */
export function hiddenLiteral(url: URL): string | null {
  const host = literal(url);
  return isIP(host) !== 0 && !isPublicAddress(host) ? host : null;
}

/**
 * A resolver for a connection: every address of the name must be public, and the connection goes to one of those that were looked
 * at, so that a name cannot lead elsewhere a moment later. `refused` makes the error; an address instead of a name never comes
 * here: {@link hiddenLiteral}.
 */
export function lookupPublic(refused: (name: string, address: string) => Error): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, "", 0);
      const hidden = addresses.find(({ address }) => !isPublicAddress(address));
      const [first] = addresses;
      if (hidden !== undefined || first === undefined) return callback(refused(hostname, hidden?.address ?? "no address"), "", 0);
      if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function literal({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}
