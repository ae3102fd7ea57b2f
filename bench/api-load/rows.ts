// SPDX-License-Identifier: Apache-2.0
import { activationSchema, type SessionActivation } from "../../src/contract/activation.ts";

export const RUN = "load";
const INPUT = "Summarise the attached tickets, and file what is urgent. ".repeat(18); // about 1 KB

/** `count` activations as a producer sends them: 1 KB of input, one tool server with a token of its own. Pure. */
export function rowsOf(count: number): (Record<string, unknown> & { activation_id: string })[] {
  return Array.from({ length: count }, (_, index) => ({
    activation_id: `act-${index}`,
    run_id: RUN,
    task_id: { taskset: "bench", task_id: String(index) },
    episode_id: { rollout_id: `r${index}` },
    input: INPUT,
    model: { name: "stand-in" },
    tool_grants: [
      {
        type: "mcp",
        name: "office",
        required: true,
        connection: { transport: "streamable_http", url: "http://127.0.0.1:9/mcp", headers: { authorization: `Bearer token-of-${index}` } },
      },
    ],
    reply_to: null,
  }));
}

export function parsed(rows: readonly Record<string, unknown>[]): SessionActivation[] {
  return rows.map((row) => activationSchema.parse(row));
}

export function inPieces<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
}

/** Each piece by the next of `clients` that is free. */
export async function sharedOut<C, T>(
  clients: readonly C[],
  pieces: readonly T[],
  work: (client: C, piece: T) => Promise<void>,
): Promise<void> {
  const left = pieces.values();
  await Promise.all(
    clients.map(async (client) => {
      for (const piece of left) await work(client, piece);
    }),
  );
}
