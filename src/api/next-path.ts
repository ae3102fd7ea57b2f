// SPDX-License-Identifier: Apache-2.0

/** Where one who asked for no page in particular begins. */
const HOME = "/";
const MOST_CHARACTERS = 2_000;

/** Where to go on after signing in: a path of this server, whatever was asked for. Pure. */
export function nextPath(asked: string | undefined): string {
  if (asked === undefined || !asked.startsWith("/") || asked.length > MOST_CHARACTERS) return HOME;
  const here = "http://here.invalid";
  if (!URL.canParse(asked, here)) return HOME;
  // As a browser would read it: backslashes and control characters count, and "/.//host" has another host in the end.
  const { origin, pathname, search } = new URL(asked, here);
  return origin === here && !pathname.startsWith("//") && !pathname.startsWith("/sign-") ? pathname + search : HOME;
}
