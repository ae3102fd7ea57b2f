// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import type { EventReply } from "../../../src/api/messages.ts";
import type { Story } from "../../../src/api/story.ts";
import { askJson, segment } from "../ask.ts";
import { useRepeated } from "../repeat.ts";

/** An event, and its id in the stream. */
export type LiveEvent = EventReply & { id: string };

/** Its place in the queue changes without an event. */
const OPEN_EVERY_MS = 10_000;
/** Its end is told a moment before it is recorded. */
const RECORDING_MS = 300;
const MOST_EVENTS = 300;
const STAGES = ["starting", "running", "collecting", "over", "ended"] as const;

export interface StoryNow {
  story: Story | null;
  /** Newest first; only while it has not ended. */
  events: readonly LiveEvent[];
  error: unknown;
  again: () => void;
}

/** One activation's story, kept up to date while it has not ended: its events come by themselves, and go on where they were after a lost connection. */
export function useStory(id: string): StoryNow {
  const [story, setStory] = useState<Story | null>(null);
  const [events, setEvents] = useState<readonly LiveEvent[]>([]);
  const isOpen = story !== null && story.ending === null && story.now?.state !== "ended";
  const generation = story?.now?.generation ?? 0;
  const [toldEnd, setToldEnd] = useState(false);

  const { error, again } = useRepeated(async (signal) => {
    const found = await askJson<Story>(`/v1/activations/${segment(id)}/story`, { signal });
    setStory(found);
    if (found.ending !== null || found.now?.state === "ended") return null;
    return toldEnd ? RECORDING_MS : OPEN_EVERY_MS;
  }, id);

  useEffect(() => {
    if (!isOpen) return undefined;
    setEvents([]);
    setToldEnd(false);
    const source = new EventSource(`/v1/activations/${segment(id)}/events`); // goes on by itself, after the last one that came
    const take = (message: MessageEvent<string>): void => {
      const event = { ...(JSON.parse(message.data) as EventReply), id: message.lastEventId };
      setEvents((before) => (before.some((each) => each.id === event.id) ? before : [event, ...before].slice(0, MOST_EVENTS)));
      if (event.stage === "ended") {
        source.close();
        setToldEnd(true);
      }
      if (event.stage === "ended" || event.stage === "over" || event.stage === "starting") again();
    };
    for (const stage of STAGES) source.addEventListener(stage, take);
    return () => source.close();
  }, [isOpen, id, generation]);
  return { story, events, error, again };
}
