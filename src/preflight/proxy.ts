// SPDX-License-Identifier: Apache-2.0
import ipaddr from "ipaddr.js";

/** A session's environment, as far as it says how servers are reached. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy through which Codex asks a URL; null = none. As its HTTP client decides (reqwest with hyper-util 0.1, in 0.144.4 and
 * 0.171.0): upper case before lower case, the proxy of the scheme before ALL_PROXY, none of them where REQUEST_METHOD is set. Pure.
 */
export function proxyOf(url: URL, env: ProxyEnvironment): URL | null {
  if (env["REQUEST_METHOD"] !== undefined || isExcepted(url.hostname, first(env, "NO_PROXY"))) return null;
  return proxyUrl(first(env, url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY")) ?? proxyUrl(first(env, "ALL_PROXY"));
}

/** Whether the way is one that only Codex can go: such a server is not looked at. Pure. */
export function goesThroughSocks(url: string, env: ProxyEnvironment): boolean {
  return proxyOf(new URL(url), env)?.protocol.startsWith("socks") === true;
}

function first(env: ProxyEnvironment, name: string): string {
  return env[name] ?? env[name.toLowerCase()] ?? "";
}

const SCHEMES = new Set(["http:", "https:", "socks4:", "socks4a:", "socks5:", "socks5h:"]);

/** null: one that Codex does not take, and passes over in silence. */
function proxyUrl(text: string): URL | null {
  const whole = text.includes("://") ? text : `http://${text}`;
  const url = text !== "" && URL.canParse(whole) ? new URL(whole) : null;
  return url !== null && SCHEMES.has(url.protocol) ? url : null;
}

/** Addresses by address or CIDR; names with all that is below them. "*" is each name, and no address. A port makes an entry match nothing. */
function isExcepted(hostname: string, list: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  const entries = list.split(",").map((entry) => entry.trim().toLowerCase());
  if (ipaddr.isValid(host)) return entries.some((entry) => holds(entry, host));
  return entries.some((entry) => {
    const name = entry.replace(/^\./, "");
    return entry === "*" || (name !== "" && (host === name || host.endsWith(`.${name}`)));
  });
}

function holds(entry: string, host: string): boolean {
  const address = ipaddr.parse(host);
  if (ipaddr.isValidCIDR(entry)) {
    const [network, bits] = ipaddr.parseCIDR(entry);
    return network.kind() === address.kind() && address.match([network, bits] as never);
  }
  return ipaddr.isValid(entry) && ipaddr.parse(entry).toString() === address.toString();
}
