// SPDX-License-Identifier: Apache-2.0
import { isPlainWord, isSecretName } from "../redact/index.ts";

type Json = Record<string, unknown>;

/** One place in an activation that holds a secret, in clear (a string) or sealed (an object). */
export interface SecretSlot {
  /** e.g. `tool_grants[0].connection.headers.Authorization` */
  readonly path: string;
  readonly holder: Json;
  readonly key: string;
  /** Of a URL only its user, query and fragment are secret; where it leads is not. */
  readonly isUrl: boolean;
  /** Where it is sent, as text: of a grant's or a model's secret. An address says where the others go, and its own is the rest. */
  readonly destination: string;
  readonly isAddress: boolean;
}

/**
 * Every place of an activation whose value must not reach Redis in clear: header values, cookies, stdio env values,
 * secret sandbox variables, the model key, and URLs with user info, query or fragment. Finds the same places in a sealed
 * activation. Fields of later schema versions are passed by.
 */
export function secretSlots(activation: object): SecretSlot[] {
  const slots: SecretSlot[] = [];
  const adderTo =
    (destination: string, isAddress = false): Add =>
    (holder, key, path, isSecret = () => true) => {
      const value = holder[key];
      const there = isObject(value) ? value["sealed"] === 1 : typeof value === "string" && isSecret(value);
      if (there) slots.push({ path, holder, key, isUrl: isSecret === urlTellsMore, destination, isAddress });
    };

  const { tool_grants: grants, sandbox, model } = activation as Json;
  for (const [index, grant] of Array.isArray(grants) ? grants.entries() : []) {
    if (!isObject(grant)) continue;
    const path = `tool_grants[${index}]`;
    const connection = isObject(grant["connection"]) ? grant["connection"] : {};
    const add = adderTo(destinationOf(grant, connection, [connection["url"], grant["base_url"]]));
    const addAddress = adderTo(destinationOf(grant, connection, []), true);
    const addAll = (holder: unknown, at: string): void => {
      if (isObject(holder)) for (const key of Object.keys(holder)) add(holder, key, `${at}.${key}`);
    };
    addAddress(connection, "url", `${path}.connection.url`, urlTellsMore);
    addAll(connection["headers"], `${path}.connection.headers`);
    addAll(connection["env"], `${path}.connection.env`);
    addAddress(grant, "base_url", `${path}.base_url`, urlTellsMore);
    addAll(grant["headers"], `${path}.headers`);
    addAll(grant["cookies"], `${path}.cookies`);
  }
  if (isObject(sandbox)) addSandboxSlots(sandbox, adderTo(""));
  if (isObject(model)) {
    adderTo(JSON.stringify(["model", model["base_url"]]))(model, "api_key", "model.api_key");
    adderTo("", true)(model, "base_url", "model.base_url", urlTellsMore);
  }
  return slots;
}

/** All that decides who gets a grant's secrets, and as what: an entry that somebody changes in Redis must not get them. */
function destinationOf(grant: Json, connection: Json, addresses: readonly unknown[]): string {
  const { transport, command, args } = connection;
  const holders = [connection["headers"], connection["env"], grant["headers"], grant["cookies"]];
  const names = holders.map((holder) => (isObject(holder) ? Object.keys(holder).sort() : null));
  return JSON.stringify([grant["type"], grant["name"], transport, command, args, names, addresses]);
}

type Add = (holder: Json, key: string, path: string, isSecret?: (text: string) => boolean) => void;

function addSandboxSlots(sandbox: Json, add: Add): void {
  const env = isObject(sandbox["env"]) ? sandbox["env"] : {};
  for (const [name, entry] of Object.entries(env)) {
    if (isObject(entry) && entry["sealed"] !== 1) {
      add(entry, "value", `sandbox.env.${name}.value`, () => entry["secret"] === true);
    } else {
      add(env, name, `sandbox.env.${name}`, (value) => isSecretName(name) && !isPlainWord(value));
    }
  }
  for (const [index, file] of Array.isArray(sandbox["files"]) ? sandbox["files"].entries() : []) {
    if (isObject(file)) add(file, "url", `sandbox.files[${index}].url`, urlTellsMore);
  }
}

/** True unless the URL is known to hold nothing beside scheme, host and path. */
function urlTellsMore(text: string): boolean {
  if (!URL.canParse(text)) return true;
  const { username, password, search, hash } = new URL(text);
  return [username, password, search, hash].some((part) => part !== "");
}

function isObject(value: unknown): value is Json {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
