// SPDX-License-Identifier: Apache-2.0
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { newApiKey, openApiKeys, type ApiKeys } from "../api/api-keys.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { createOnly } from "../host/files.ts";
import { isLoopback } from "../host/loopback.ts";

/**
 * The keys that the settings name (`api.keys_file`, ROLLCALL_API_KEY). Without any a key is made once, and kept in the state
 * directory with mode 0600: sandboxes share this machine's loopback, so a server is never open. {@link requireChosenKey} says where that is not enough. Throws RollcallError.
 */
export async function apiKeysOf(settings: Settings, env: Environment, log: Logger): Promise<ApiKeys> {
  const file = settings.api.keys_file ?? null;
  const given = env["ROLLCALL_API_KEY"] ?? "";
  const single = given !== "" ? given : file !== null ? null : await ownKey(settings.state_dir, log);
  return openApiKeys({ single, file, onProblem: (error) => log.error({ err: error }, "the API keys stay as they were") });
}

/**
 * Throws RollcallError "api_keys_missing" where others than this host reach the server and no key was chosen for it: one made here
 * is for one's own use.
 */
export function requireChosenKey({ api }: Settings, env: Environment): void {
  if (isLoopback(api.host) || api.keys_file !== undefined || (env["ROLLCALL_API_KEY"] ?? "") !== "") return;
  throw new RollcallError(
    "api_keys_missing",
    `refused to listen on ${api.host}, which other hosts reach, without a key chosen for it: give --api-keys-file (lines of ` +
      "NAME SCOPE[,SCOPE] sha256:HEX) or set ROLLCALL_API_KEY; or listen on 127.0.0.1",
  );
}

async function ownKey(stateDir: string, log: Logger): Promise<string> {
  const path = join(stateDir, "api-key");
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const made = newApiKey();
  const ours = await createOnly(path, made, 0o600);
  log.warn({ path }, "no API key is configured (ROLLCALL_API_KEY, --api-keys-file): callers need the one in this file");
  return ours ? made : (await readFile(path, "utf8")).trim();
}
