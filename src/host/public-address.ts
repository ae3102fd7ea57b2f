// SPDX-License-Identifier: Apache-2.0
import { lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { RollcallError } from "../errors.ts";

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
  const name = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  return allowed.some((entry) => [name, url.hostname, `${url.hostname}:${port}`].includes(entry.toLowerCase()));
}

/** Throws RollcallError "address_refused" for a URL whose host is an address that is not public. */
export function requirePublicLiteral(url: URL): void {
  const name = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(name) !== 0 && !isPublicAddress(name)) throw refused(name, name);
}

/**
 * A resolver for a connection: every address of the name must be public, and the connection goes to one of those that were looked
 * at, so that a name cannot lead elsewhere a moment later. An address instead of a name never comes here: {@link requirePublicLiteral}.
 */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, "", 0);
    const hidden = addresses.find(({ address }) => !isPublicAddress(address));
    const [first] = addresses;
    if (hidden !== undefined || first === undefined) return callback(refused(hostname, hidden?.address ?? "no address"), "", 0);
    if (options.all === true) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

function refused(name: string, address: string): RollcallError {
  const where = name === address ? `${name} is` : `${name} is at ${address},`;
  return new RollcallError("address_refused", `${where} no public address; where this is meant, name the host in webhooks.allow_hosts`);
}
