// SPDX-License-Identifier: Apache-2.0

/** Cookies of one session by name, as a resources server set them. All are secrets. */
export type Cookies = Readonly<Record<string, string>>;

/**
 * What an answer's Set-Cookie headers leave of the cookies sent. One server, one session: attributes say nothing here that
 * upstream's clients would heed, but a cookie that is set to expire is gone. Pure.
 */
export function afterSetCookie(sent: Cookies, setCookie: readonly string[]): Cookies {
  const cookies = new Map(Object.entries(sent));
  for (const line of setCookie) {
    const [pair = "", ...attributes] = line.split(";");
    const equals = pair.indexOf("=");
    const name = pair.slice(0, equals).trim();
    if (equals < 1 || name === "__proto__") continue;
    if (attributes.some((attribute) => /^\s*max-age\s*=\s*(0|-\d+)\s*$/i.test(attribute))) cookies.delete(name);
    else cookies.set(name, pair.slice(equals + 1).trim());
  }
  return Object.fromEntries(cookies);
}

export function cookieHeader(cookies: Cookies): string | null {
  const pairs = Object.entries(cookies).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? null : pairs.join("; ");
}
