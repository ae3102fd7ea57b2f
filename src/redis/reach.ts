// SPDX-License-Identifier: Apache-2.0
import { connect } from "node:net";
import { redisOptions, type RedisTarget } from "./connect.ts";

/**
 * Whether the machine where Redis listens answers at all: it takes a TCP connection or refuses one. A Redis that is dead,
 * frozen or starting again counts as reachable; false means that this process is cut off from it. Always true for a socket
 * of this machine. Never throws.
 */
export async function redisMachineAnswers(target: RedisTarget, timeoutMs: number): Promise<boolean> {
  const { host, port } = redisOptions(target, "fail_fast");
  if (host === undefined || port === undefined) return true;
  const socket = connect({ host, port });
  try {
    return await new Promise<boolean>((resolve) => {
      socket.setTimeout(timeoutMs, () => resolve(false));
      socket.once("connect", () => resolve(true));
      socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED" || error.code === "ECONNRESET"));
    });
  } finally {
    socket.destroy();
  }
}
