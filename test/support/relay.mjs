// SPDX-License-Identifier: Apache-2.0
// node relay.mjs <port> <unix socket>: brings a server of another network namespace to 127.0.0.1:<port> of this one.
import { connect, createServer } from "node:net";

const [port, path] = process.argv.slice(2);
const server = createServer((near) => {
  const far = connect(path);
  near.pipe(far).pipe(near);
  for (const [one, other] of [
    [near, far],
    [far, near],
  ])
    one.on("error", () => other.destroy()).on("close", () => other.destroy());
});
server.listen(Number(port), "127.0.0.1", () => process.stdout.write("ready\n"));
