// SPDX-License-Identifier: Apache-2.0
import { createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";

/**
 * Where commands of different sessions meet, so that one kills while the others provably run: each connects and says its name. The killer
 * is told to go once all neighbours wait; they are told to go when its last command is gone, and those that still can say "alive".
 */
export interface MeetingPoint {
  readonly port: number;
  /** Neighbours that waited when the killer was told to go, for each of its commands. */
  readonly besides: readonly number[];
  /** Neighbours whose process outlived the killer. */
  readonly alive: ReadonlySet<string>;
  close(): Promise<void>;
}

/** A shell command that waits at the meeting point and then runs `command`, still connected: by bash, for sh cannot connect. */
export const afterMeeting = (port: number, name: "killer first" | "killer last", command: string): string =>
  `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}; echo "${name}" >&3; read -r go <&3; ${command}'`;

/** A shell command with a python3 and a sleep of its own, which both live until the killer is gone; then says so in journal.txt. */
export const besideTheKiller = (port: number, name: string): string =>
  `sleep 600 & python3 -c 'import socket
meeting = socket.create_connection(("127.0.0.1", ${port}))
meeting.sendall(b"${name}\\n")
meeting.makefile().readline()
meeting.sendall(b"alive\\n")
meeting.makefile().readline()' && kill -0 $! && echo "python3 and sleep live" >> journal.txt; kill $!`;

export async function startMeetingPoint(neighbours: number): Promise<MeetingPoint> {
  const [waiting, alive, besides] = [new Map<string, Socket>(), new Set<string>(), new Array<number>()];
  const open = new Set<Socket>();
  let killer: Socket | null = null;
  const letGo = (): void => {
    if (killer === null || waiting.size < neighbours) return;
    besides.push(waiting.size);
    killer.write("go\n");
    killer = null;
  };
  const server = createServer((socket) => {
    let name = "";
    open.add(socket);
    socket.on("error", () => undefined); // a killed process resets its connection
    socket.once("close", () => {
      open.delete(socket);
      if (name === "killer last") for (const neighbour of waiting.values()) neighbour.write("go\n");
      else waiting.delete(name);
    });
    createInterface(socket).on("line", (line) => {
      if (line === "alive") {
        alive.add(name);
        socket.end("noted\n");
        return;
      }
      name = line;
      if (name.startsWith("killer")) killer = socket;
      else waiting.set(name, socket);
      letGo();
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the meeting point has no port");
  return {
    port: address.port,
    besides,
    alive,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        for (const socket of open) socket.destroy();
      }),
  };
}
