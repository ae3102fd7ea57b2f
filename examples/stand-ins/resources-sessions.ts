// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

const episodeSchema = z.strictObject({ rollout_id: z.string().min(1), attempt: z.int().min(0).default(0) });

export const seedSchema = z.strictObject({
  resources_session_id: z.string().min(1),
  episode_id: episodeSchema,
  task_id: z.strictObject({ taskset: z.string().min(1), task_id: z.string().min(1) }),
  task_data: z.record(z.string(), z.unknown()),
});
export type Seed = z.infer<typeof seedSchema>;

export const closeSchema = z.strictObject({ resources_session_id: z.string(), episode_id: episodeSchema });
export type Close = z.infer<typeof closeSchema>;

export interface ResourcesSession {
  id: string;
  /** As `<rollout_id>` or `<rollout_id>-a<N>`; null where the protocol does not tell it. */
  captureKey: string | null;
  rolloutId: string;
  taskId: string;
}

/** What a request is refused with. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

/**
 * Sessions by the rules of Gym: a seed sent again is the same session, another one under its id is refused, a closed id stays closed,
 * also when it was closed before it was seeded.
 */
export class ResourcesSessions {
  readonly #open = new Map<string, { session: ResourcesSession; seed: string }>();
  readonly #closed = new Map<string, string>();

  seed(seed: Seed): ResourcesSession {
    const { resources_session_id: id, episode_id, task_id } = seed;
    if (this.#closed.has(id)) throw new Refused(409, "the session is closed");
    const text = JSON.stringify(seed);
    const known = this.#open.get(id);
    if (known !== undefined && known.seed !== text) throw new Refused(409, "the session was seeded with something else");
    const session = known?.session ?? { id, captureKey: keyOf(episode_id), rolloutId: episode_id.rollout_id, taskId: task_id.task_id };
    this.#open.set(id, { session, seed: text });
    return session;
  }

  /** One without a name of its caller's. */
  seedRow(session: ResourcesSession): void {
    this.#open.set(session.id, { session, seed: "" });
  }

  close({ resources_session_id: id, episode_id }: Close): void {
    const key = keyOf(episode_id);
    const known = this.#open.get(id)?.session.captureKey ?? this.#closed.get(id) ?? key;
    if (known !== key) throw new Refused(409, "the session belongs to another episode");
    this.#open.delete(id);
    this.#closed.set(id, key);
  }

  get(id: string): ResourcesSession {
    const known = this.#open.get(id);
    if (known === undefined) throw new Refused(409, "there is no such session, or it was closed");
    return known.session;
  }

  get openIds(): string[] {
    return [...this.#open.keys()];
  }
}

function keyOf({ rollout_id, attempt }: { rollout_id: string; attempt: number }): string {
  return attempt === 0 ? rollout_id : `${rollout_id}-a${attempt}`;
}
