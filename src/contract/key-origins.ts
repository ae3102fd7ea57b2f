// SPDX-License-Identifier: Apache-2.0

/** Where the Responses API is when nobody says otherwise. */
export const DEFAULT_MODEL_URL = "https://api.openai.com/v1";

/** Origins (scheme, host and port) that the key in each variable may be sent to; "*" = any. */
export type KeyOrigins = Readonly<Record<string, readonly string[]>>;

/** Of a model URL, whatever attempt it is for; null: it is no URL. */
export function modelOrigin(baseUrl: string): string | null {
  const url = baseUrl.replaceAll("{capture_key}", "key");
  return URL.canParse(url) ? new URL(url).origin : null;
}

export function keyMayGoTo(origins: KeyOrigins, variable: string, baseUrl: string): boolean {
  const allowed = Object.hasOwn(origins, variable) ? origins[variable]! : [];
  const origin = modelOrigin(baseUrl);
  return allowed.includes("*") || (origin !== null && allowed.includes(origin));
}

/** For people: what was refused, and by which setting it would be allowed. */
export function keyOriginText(variable: string, baseUrl: string): { message: string; accepted: string } {
  const origin = modelOrigin(baseUrl) ?? "it";
  return {
    message: `the key in ${variable} may not be sent to ${origin}: the workers' configuration does not allow it`,
    accepted: `an origin of key_origins.${variable}, where the workers' operator can add ${JSON.stringify(origin)}; or a key of your own (model.api_key)`,
  };
}
