// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { startOfficeTools, type OfficeCall, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";

export interface ChaosOffice {
  readonly url: string;
  readonly mintToken: OfficeTools["mintToken"];
  /** Of all its lives. */
  readonly calls: readonly OfficeCall[];
  /** Hangs up on everybody, and comes back at the same address. */
  restart(seconds: number): Promise<void>;
  close(): Promise<void>;
}

/** The office tools, which can be restarted and still know what they served. The caller closes them. */
export async function startChaosOffice(secret: string): Promise<ChaosOffice> {
  const earlier: OfficeCall[] = [];
  let tools = await startOfficeTools({ secret });
  const { url, mintToken } = tools;
  return {
    url,
    mintToken,
    get calls() {
      return [...earlier, ...tools.calls];
    },
    async restart(seconds) {
      await tools.close();
      await delay(seconds * 1_000);
      const served = tools.calls;
      tools = await startOfficeTools({ secret, port: Number(new URL(url).port) });
      earlier.push(...served);
    },
    close: () => tools.close(),
  };
}
