// SPDX-License-Identifier: Apache-2.0
import { connect } from "node:net";
import type { Environment } from "../config/load.ts";
import { secretVariable } from "../config/secret-variable.ts";
import { RollcallError } from "../errors.ts";
import type { TaskCheck } from "./tasks.ts";

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * What would fail every task, looked at once before the first: a model server nobody answers at, a key that is not set.
 * Only for a process that works itself: other workers have their own network and variables. Throws RollcallError.
 */
export async function checkModel(check: Pick<TaskCheck, "modelUrls" | "keyVariables" | "keyUses">, env: Environment): Promise<void> {
  const unset: string[] = [];
  for (const name of check.keyVariables) if ((await secretVariable(env, name)) === undefined) unset.push(name);
  if (unset.length > 0) {
    throw new RollcallError(
      "model_key_missing",
      `the model key's variable ${unset.join(", ")} is not set: export it (any value, if your model server asks for none), or name another with --model-api-key-env`,
    );
  }
  const origins = new Map([...check.modelUrls].map((url) => [new URL(url).origin, url]));
  const silent = (await Promise.all([...origins.values()].map(async (url) => ((await answers(new URL(url))) ? null : url)))).filter(
    (url) => url !== null,
  );
  if (silent.length > 0) {
    throw new RollcallError(
      "model_unreachable",
      `nobody answers at the model URL ${silent.map(withoutSecrets).join(", ")}: start the model server, or correct --model-base-url`,
    );
  }
  for (const { variable, url } of check.keyUses.values()) {
    const status = await refusal(url, (await secretVariable(env, variable))!);
    if (status === null) continue;
    throw new RollcallError(
      "model_key_refused",
      `the model server at ${withoutSecrets(url)} refuses the key in ${variable} (HTTP ${status}): export the right key, or name another variable with --model-api-key-env`,
    );
  }
}

/** 401 or 403 where the list of models is asked for; null = anything else, also from a server that has no such list, or no right to it for this key. */
async function refusal(url: string, key: string): Promise<number | null> {
  const list = new URL(url);
  list.pathname = `${list.pathname.replace(/\/$/, "")}/models`;
  try {
    const answer = await fetch(list, {
      headers: { authorization: `Bearer ${key}` },
      redirect: "manual", // the key stays with the server that was named
      signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS),
    });
    if (answer.status !== 401 && answer.status !== 403) {
      await answer.body?.cancel();
      return null;
    }
    return /\b(?:scopes?|permissions?)\b|<html/i.test((await answer.text()).slice(0, 16_384)) ? null : answer.status;
  } catch {
    return null; // the session will tell
  }
}

function answers(url: URL): Promise<boolean> {
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return new Promise((resolve) => {
    const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ""), port, timeout: CONNECT_TIMEOUT_MS });
    const done = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => done(true));
    socket.once("error", () => done(false));
    socket.once("timeout", () => done(false));
  });
}

/** A URL may carry a key in its user part or query. */
function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${decodeURI(pathname)}`;
}
