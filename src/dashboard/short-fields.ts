// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";
import { inPipeline } from "../queue/pipeline.ts";

/** Of one hash: the texts asked for by name, null where there is none, or how many bytes one has that is too long to be read. */
export type ShortFields<F extends string> = Record<F, string | number | null>;

/** Reads fields of hashes, in order, but none of more than `most` bytes: what nobody bounded must not come over the wire. */
export async function shortFields<F extends string>(
  redis: Redis,
  hashes: readonly string[],
  fields: readonly F[],
  most: number,
): Promise<ShortFields<F>[]> {
  const places = hashes.flatMap((hash) => fields.map((field) => ({ hash, field })));
  if (places.length === 0) return [];
  const lengths = (await inPipeline(redis, (pipeline) => {
    for (const { hash, field } of places) pipeline.hstrlen(hash, field);
  })) as number[];
  const short = places.filter((_, index) => lengths[index]! > 0 && lengths[index]! <= most);
  const texts = (await inPipeline(redis, (pipeline) => {
    for (const { hash, field } of short) pipeline.hget(hash, field);
  })) as (string | null)[];
  const found = texts.values();
  const values = places.map((_, index) => {
    const length = lengths[index]!;
    return length === 0 ? null : length <= most ? found.next().value! : length;
  });
  return hashes.map((_, index) => {
    const own = values.slice(index * fields.length, (index + 1) * fields.length);
    return Object.fromEntries(fields.map((field, at) => [field, own[at]])) as ShortFields<F>;
  });
}
