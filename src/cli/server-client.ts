// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { createClient, type Client } from "../client/client.ts";
import type { Environment } from "../config/load.ts";
import { secretVariable } from "../config/secret-variable.ts";
import type { Settings } from "../config/settings.ts";
import { messageOf, RollcallError } from "../errors.ts";

/** Flags of commands that can work through a server instead of Redis. */
export interface ServerFlags {
  server?: string;
  apiKeyFile?: string;
}

export function withServerFlags(command: Command): Command {
  return command
    .option("--server <url>", "work through a server's API (`rollcall serve`) instead of Redis")
    .option("--api-key-file <file>", "the key for it (default: ROLLCALL_API_KEY, else the one that a server of this user made)");
}

/** Throws RollcallError "api_key_missing", "server_url". */
export async function clientOf(
  url: string,
  flags: ServerFlags,
  { settings, env }: { settings: Settings; env: Environment },
): Promise<Client> {
  return createClient({ url, key: await keyOf(flags, settings, env) });
}

async function keyOf({ apiKeyFile }: ServerFlags, { state_dir }: Settings, env: Environment): Promise<string> {
  const given = apiKeyFile === undefined ? await secretVariable(env, "ROLLCALL_API_KEY") : undefined;
  if (given !== undefined) return given;
  const path = apiKeyFile ?? join(state_dir, "api-key");
  const key = await readFile(path, "utf8").catch((error: unknown) => {
    throw new RollcallError("api_key_missing", `no key for the server: set ROLLCALL_API_KEY, or --api-key-file (${messageOf(error)})`, {
      cause: error,
    });
  });
  if (key.trim() === "") throw new RollcallError("api_key_missing", `${path} is empty: expected the key of the server's API`);
  return key.trim();
}
