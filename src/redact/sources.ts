// SPDX-License-Identifier: Apache-2.0
import type { SecretInput } from "./forms.ts";

/** True for names of variables and parameters whose values are secret unless said otherwise. */
export function isSecretName(name: string): boolean {
  return /KEY|TOKEN|SECRET|PASSWORD|AUTH/i.test(name);
}

const WORDS =
  /^(?:true|false|yes|no|on|off|none|null|nil|undefined|auto|default|enabled?|disabled?|always|never|prompt|bearer|basic|oauth2?|jwt|mcp)$/i;
const DIGITS = /^\d{1,5}$/;
const LOCALE = /^(?:C|POSIX|[a-z]{2,3}_[A-Z]{2})(?:\.[\w-]+)?(?:@\w+)?$/;
const PATHS =
  /^(?:\/(?:app|bin|data|dev|etc|home|lib|mnt|opt|proc|root|run|sandbox|srv|tmp|usr|var|work|workspace)(?:\/[\w.+@-]*)*(?::|$))+$/;

/**
 * True for values that say nothing and stand in many texts: true, small numbers, locale names, paths of the sandbox.
 * They are not secret even where the name says so, unless marked secret.
 */
export function isPlainWord(value: string): boolean {
  const word = value.trim();
  return word === "" || [WORDS, DIGITS, LOCALE, PATHS].some((pattern) => pattern.test(word));
}

/** A variable for a stdio server or a sandbox; `secret` overrules what name and value look like. */
export type EnvValue = string | { value: string; secret?: boolean | undefined };

/** The secret ones of a set of variables. */
export function secretsOfEnv(env: Readonly<Record<string, EnvValue>>): SecretInput[] {
  return Object.entries(env).flatMap(([name, given]) => {
    const { value, secret } = typeof given === "string" ? { value: given } : { secret: undefined, ...given };
    return (secret ?? (isSecretName(name) && !isPlainWord(value))) ? [{ name, value }] : [];
  });
}

/**
 * The secrets in a URL: user, password and both together, and the values of its query (of a fragment that looks like
 * one, too) that are not plain words. Nothing for a text that is no URL.
 */
export function secretsOfUrl(url: string): SecretInput[] {
  if (!URL.canParse(url)) return [];
  const { username, password, searchParams, hash } = new URL(url);
  const [user, pass] = [decoded(username), decoded(password)];
  const found: SecretInput[] = [];
  if (pass !== "") found.push({ value: pass }, { value: `${user}:${pass}` });
  if (user !== "" && !isPlainWord(user)) found.push({ value: user });
  for (const [name, value] of [...searchParams, ...new URLSearchParams(hash.slice(1))]) {
    if (!isPlainWord(value)) found.push({ name, value });
  }
  return found;
}

function decoded(component: string): string {
  try {
    return decodeURIComponent(component);
  } catch {
    return component;
  }
}
