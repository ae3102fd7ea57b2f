// SPDX-License-Identifier: Apache-2.0

/** What a scan of Redis gives, in pieces of at most `size` and never an empty one. Elements may come twice, as scans do. */
export async function* inPieces(scan: AsyncIterable<unknown>, size: number): AsyncGenerator<string[], undefined> {
  for await (const part of scan) {
    const found = part as string[];
    for (let from = 0; from < found.length; from += size) yield found.slice(from, from + size);
  }
  return undefined;
}
