// SPDX-License-Identifier: Apache-2.0

interface RequestHeaders {
  host: string | undefined;
  origin: string | undefined;
  /** Sec-Fetch-Site: browsers send it to https and to loopback. */
  site: string | undefined;
}

/**
 * Whether a browser's request comes from a page of this server. Without either header it is taken for one that does not: whoever
 * is no browser has no cookie to send. Pure.
 */
export function isSameOrigin({ host, origin, site }: RequestHeaders): boolean {
  if (site !== undefined) return site === "same-origin";
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host === host.toLowerCase();
}
