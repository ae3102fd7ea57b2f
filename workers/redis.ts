// SPDX-License-Identifier: Apache-2.0
// The keeper of one embedded Redis. Started, detached, by src/redis/embedded.ts; its output is <state directory>/keeper.log.
import { messageOf } from "../src/errors.ts";
import { runKeeper, type KeeperOptions } from "../src/redis/keeper.ts";

process.umask(0o077);
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => stop.abort());

const log = (message: string) => console.log(`${process.pid}:keeper ${new Date().toISOString()} ${message}`);
try {
  await runKeeper(JSON.parse(process.argv[2] ?? "") as KeeperOptions, stop.signal, log);
  process.exit(0); // not when the last timer of a client library allows: commands wait for the lock we just released
} catch (error) {
  log(messageOf(error));
  process.exit(1);
}
