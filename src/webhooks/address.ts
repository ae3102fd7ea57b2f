// SPDX-License-Identifier: Apache-2.0
import { RollcallError } from "../errors.ts";
import { hiddenLiteral } from "../host/public-address.ts";

/** Throws RollcallError "https_needed". */
export function requireHttps(url: URL): void {
  if (url.protocol === "https:") return;
  throw new RollcallError("https_needed", `${url.origin} is not https; where this is meant, name the host in webhooks.allow_hosts`);
}

/** Throws RollcallError "address_refused" for a URL whose host is an address that is not public. */
export function requirePublicLiteral(url: URL): void {
  const hidden = hiddenLiteral(url);
  if (hidden !== null) throw addressRefused(hidden, hidden);
}

export function addressRefused(name: string, address: string): RollcallError {
  const where = name === address ? `${name} is` : `${name} is at ${address},`;
  return new RollcallError("address_refused", `${where} no public address; where this is meant, name the host in webhooks.allow_hosts`);
}
