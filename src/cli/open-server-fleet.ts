// SPDX-License-Identifier: Apache-2.0
import { openDirectoryStore } from "../artifacts/directory-store.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { Collect } from "../rollout/collect-files.ts";
import type { Fleet } from "../rollout/fleet.ts";
import { httpFleet } from "../rollout/http-fleet.ts";
import type { OutputDir } from "../rollout/output-dir.ts";
import { clientOf, type ServerFlags } from "./server-client.ts";

/** The fleet of a run behind a server's API; results and files come into the output directory. */
export async function openServerFleet(options: {
  out: OutputDir;
  runId: string;
  url: string;
  collect: Collect;
  flags: ServerFlags;
  settings: Settings;
  env: Environment;
  say: (line: string) => void;
}): Promise<Fleet> {
  const { out, runId, url, collect, flags, settings, env, say } = options;
  const client = await clientOf(url, flags, { settings, env });
  await client.workers(); // an address or a key that is wrong is told before anything else
  return httpFleet({ client, runId, store: await openDirectoryStore(out.file("artifacts")), collect, say });
}
