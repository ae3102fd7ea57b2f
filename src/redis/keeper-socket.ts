// SPDX-License-Identifier: Apache-2.0
// Both ends of the keeper's unix socket. A user is whoever holds a connection: the kernel closes it also for a process
// that is kill -9'd. The keeper writes "starting" once a second, then "ready <its pid>".
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { hasErrno, RollcallError } from "../errors.ts";

const HEARTBEAT_MS = 1_000;
const SILENCE_MS = 30_000;

/** The keeper's end. */
export interface KeeperUsers {
  /** Tells users, also later ones, whether Redis can be used. */
  setReady(ready: boolean): void;
  /** Aborts when Redis was ready and nobody was connected for the linger time. */
  readonly gone: AbortSignal;
  /** How many are connected. */
  readonly count: number;
  /** Stops listening and hangs up on everybody. */
  close(): void;
}

/** Listens on `path`, which must be free. */
export async function listenForUsers(path: string, lingerMs: number): Promise<KeeperUsers> {
  const users = new Set<Socket>();
  const gone = new AbortController();
  let ready = false;
  let linger: NodeJS.Timeout | undefined;
  const greet = (user: Socket) => user.write(ready ? `ready ${process.pid}\n` : "starting\n");
  const waitForUsers = () => {
    clearTimeout(linger);
    if (ready && users.size === 0) linger = setTimeout(() => gone.abort(), lingerMs);
  };

  const server = createServer((user) => {
    users.add(user);
    clearTimeout(linger);
    user.on("error", () => undefined); // "close" follows
    user.on("close", () => {
      users.delete(user);
      waitForUsers();
    });
    user.resume(); // else its end is never seen
    greet(user);
  });
  server.listen(path);
  await once(server, "listening");
  const heartbeat = setInterval(() => {
    if (!ready) users.forEach(greet);
  }, HEARTBEAT_MS);

  return {
    gone: gone.signal,
    get count() {
      return users.size;
    },
    setReady: (now) => {
      ready = now;
      users.forEach(greet);
      waitForUsers();
    },
    close: () => {
      ready = false;
      clearTimeout(linger);
      clearInterval(heartbeat);
      server.close();
      users.forEach((user) => user.destroy());
    },
  };
}

/** A user's end: Redis stays at least for as long as it is open. It closes by itself only when the keeper is gone. */
export interface KeeperConnection {
  readonly socket: Socket;
  readonly keeperPid: number;
}

/**
 * Connects and waits until Redis can be used. Null when no keeper listens, or it ended while we waited.
 * @param closing ends the wait and, later, the connection
 * @throws RollcallError keeper_silent when one listens and says nothing for 30 s
 */
export function joinKeeper(path: string, closing: AbortSignal): Promise<KeeperConnection | null> {
  return new Promise((resolve, reject) => {
    let said = "";
    const socket = connect(path);
    const hangUp = () => socket.destroy();
    closing.addEventListener("abort", hangUp, { once: true });
    socket.setTimeout(SILENCE_MS, () => {
      reject(
        new RollcallError("keeper_silent", `the keeper of the embedded Redis (socket ${path}) does not answer; end that process by hand`),
      );
      socket.destroy();
    });
    socket.on("error", (error) => {
      if (["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE"].some((code) => hasErrno(error, code))) resolve(null);
      else reject(error);
    });
    socket.on("close", () => {
      closing.removeEventListener("abort", hangUp);
      resolve(null);
    });
    socket.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-100);
      const ready = /^ready (\d+)\n/m.exec(said);
      if (ready === null) return;
      socket.setTimeout(0);
      resolve({ socket, keeperPid: Number(ready[1]) });
    });
  });
}
