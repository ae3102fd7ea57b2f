// SPDX-License-Identifier: Apache-2.0
import { ReadBuffer, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { SandboxProcess } from "../sandbox/types.ts";

const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
const STOP_GRACE_MS = 1_000;

/** MCP over the stdin and stdout of a process in a sandbox. Closing it stops the process; await its `exited` after that. */
export class SandboxTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #process: SandboxProcess;
  readonly #received = new ReadBuffer({ maxBufferSize: MAX_MESSAGE_BYTES });
  #closed = false;

  constructor(process: SandboxProcess) {
    this.#process = process;
  }

  start(): Promise<void> {
    const { stdin, stdout, exited } = this.#process;
    stdin.on("error", () => undefined); // it shows in the exit
    stdout.on("error", () => undefined);
    stdout.on("data", (chunk: Buffer) => this.#receive(chunk));
    void exited.then(() => this.#end());
    return Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    // No waiting for a full pipe: these messages are few and short, and an answer is bounded anyway.
    this.#process.stdin.write(serializeMessage(message));
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#process.stdin.end();
    this.#process.stop({ graceMs: STOP_GRACE_MS });
    this.#process.stdout.resume();
    this.#end();
    return Promise.resolve();
  }

  #receive(chunk: Buffer): void {
    if (this.#closed) return;
    try {
      this.#received.append(chunk);
    } catch (error) {
      this.onerror?.(error as Error);
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#received.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(error as Error); // a line that is no message; Codex passes over it, too
      }
    }
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#received.clear();
    this.onclose?.();
  }
}
