// SPDX-License-Identifier: Apache-2.0
import { request, type IncomingMessage } from "node:http";
import { isAfter } from "../../src/queue/stream-watch.ts";

/** One reader of an activation's events, which connects again with Last-Event-ID as an EventSource does. */
export interface EventReader {
  readonly activationId: string;
  readonly seen: SeenEvents;
  /** Stops reading: what comes from now on stays on its way. */
  stop(): void;
  goOn(): void;
  /** Resolves with the event `ended`, or when it is closed. */
  over: Promise<void>;
  close(): void;
}

export interface SeenEvents {
  /** Numbered ones, i.e. those of the bench. */
  numbered: number;
  /** The number of the last one; -1 before the first. */
  last: number;
  /** Numbers that were left out. */
  missed: number;
  /** Bytes until a number was left out for the first time: what had been read ahead for it. */
  bytesAhead: number;
  /** Events that were there before, or came after a later one. */
  twice: number;
  ended: number;
  /** The status of each answer that was over before the end was told; "cut" where none came. */
  cuts: string[];
  /** From Redis to the reader in ms, while `timing.on`. */
  delays: number[];
}

const AGAIN_MS = 500;

export function openEventReader(options: { origin: string; key: string; activationId: string; timing: { on: boolean } }): EventReader {
  const { origin, key, activationId, timing } = options;
  const seen: SeenEvents = { numbered: 0, last: -1, missed: 0, bytesAhead: 0, twice: 0, ended: 0, cuts: [], delays: [] };
  let [lastId, stopped, closed, bytes] = ["0-0", false, false, 0];
  let response: IncomingMessage | null = null;
  let asking: ReturnType<typeof request> | null = null;
  let finish!: () => void;
  const over = new Promise<void>((resolve) => (finish = resolve));

  function connect(): void {
    if (closed || stopped || asking !== null) return;
    const headers = { authorization: `Bearer ${key}`, ...(lastId === "0-0" ? {} : { "last-event-id": lastId }) };
    let [rest, status] = ["", "cut"];
    asking = request(`${origin}/v1/activations/${activationId}/events`, { agent: false, headers });
    asking.on("response", (answer: IncomingMessage) => {
      response = answer;
      status = String(answer.statusCode);
      answer.on("error", () => undefined); // "close" follows
      answer.setEncoding("utf8").on("data", (part: string) => {
        bytes += part.length; // ASCII here
        const blocks = (rest + part).split("\n\n");
        rest = blocks.pop()!;
        for (const block of blocks) take(block);
      });
      if (stopped) answer.pause();
    });
    asking.on("error", () => undefined);
    asking.on("close", () => {
      [asking, response] = [null, null];
      if (seen.ended > 0) return finish();
      if (closed) return;
      seen.cuts.push(status);
      setTimeout(connect, AGAIN_MS);
    });
    asking.end();
  }

  function take(block: string): void {
    const [, id, data] = /^id: (.*)\nevent: .*\ndata: (.*)$/.exec(block) ?? [];
    if (id === undefined || data === undefined) return; // a comment
    if (!isAfter(id, lastId)) seen.twice += 1;
    lastId = id;
    if (timing.on) seen.delays.push(Math.max(0, Date.now() - Number(id.split("-")[0])));
    const { stage, note = "" } = JSON.parse(data) as { stage: string; note?: string };
    if (stage === "ended") {
      seen.ended += 1;
      return;
    }
    const number = Number(note.split(" ")[0]);
    seen.numbered += 1;
    seen.missed += number - seen.last - 1;
    if (seen.missed === 0) seen.bytesAhead = bytes;
    seen.last = number;
  }

  connect();
  return {
    activationId,
    seen,
    stop() {
      stopped = true;
      response?.pause();
    },
    goOn() {
      stopped = false;
      response?.resume();
      connect();
    },
    over,
    close() {
      closed = true;
      asking?.destroy();
      finish();
    },
  };
}
